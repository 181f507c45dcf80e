"""How much memory more processes may have."""

from helpers.cluster import engines


def container(folder, limit, used, cached):
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {cached}\nactive_file 9\n")


def test_a_container_limit_counts_where_it_is_lower_than_what_the_machine_has(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "CGROUP", tmp_path)
    free = engines.available()
    assert free > 1e6
    container(tmp_path, "max", 2_000_000, 0)
    assert engines.available() > free / 2
    container(tmp_path, 3_000_000, 2_000_000, 0)
    assert engines.available() == 1_000_000


def test_files_that_a_container_has_read_count_as_free(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "CGROUP", tmp_path)
    container(tmp_path, 3_000_000, 2_900_000, 900_000)
    assert engines.available() == 1_000_000
