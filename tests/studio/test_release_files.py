"""The files of a release in the studio: packed once, in little memory."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path

from kinfold.studio.release_files import pack_folder


def test_a_folder_is_packed_once_and_in_little_memory(tmp_path: Path) -> None:
    folder, session = tmp_path / "public", tmp_path / "session"
    (session / "hierarchies").mkdir(parents=True)
    (session / "hierarchies" / "zip.csv").write_text("1;*\n", "utf-8")
    folder.mkdir()
    (folder / "release.csv").write_bytes(bytes(20_000_000))
    (folder / "policy.toml").write_text(f'file = "{session}/hierarchies/zip.csv"\n', "utf-8")
    tracemalloc.start()
    archive = pack_folder(folder, session)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
    with zipfile.ZipFile(archive) as packed:
        assert packed.namelist() == ["hierarchies/zip.csv", "policy.toml", "release.csv"]
        assert packed.read("policy.toml") == b'file = "hierarchies/zip.csv"\n'
        assert packed.getinfo("release.csv").file_size == 20_000_000
    first = archive.stat()
    assert pack_folder(folder, session).stat() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["public", "public.zip", "session"]
