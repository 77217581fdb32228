"""What a run has on disk: folders that go with it, the exchange that names a release, and a journal of both."""
