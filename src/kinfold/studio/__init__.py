"""The studio: the whole job in a browser. A thin face: pages, a small JSON interface, and nothing of the field.

serving      one server on the loopback interface; guard: who may speak to it; limits: how much
sessions     what each browser works on: a table, a policy with its history, runs; all in one folder, forgotten with it
jobs      what takes longer, each in a process of its own (worker, openings, runs_made, looks); a bounded queue
desks        open tables, for what is asked at once
*_routes     the interface, see docs/studio-interface.md
"""
