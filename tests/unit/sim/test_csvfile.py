"""A workload from a file: what is read, how it is scaled, and what is said of a bad one."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from fairlane.mac import canonical
from fairlane.sim.csvfile import address_of, load
from fairlane.sim.workload import Arrival, InvalidWorkload

HEADER = "tenant,arrival_s,service_s,kind\n"


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "traffic.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_rows_become_arrivals_in_order_of_time(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "AA-BB-CC-00-11-22,12.5,0.4,ocr\nbob,10,0.0001,text\n\n")
    workload = load(path, slots=2)
    assert list(workload.arrivals) == [
        Arrival(0, address_of("bob"), "text", 1),
        Arrival(2_500, "aa:bb:cc:00:11:22", "ocr", 400),
    ]
    assert workload.slots == {"ocr": 2, "text": 2}
    assert workload.name == "traffic.csv"


def test_a_gzipped_file_with_a_byte_order_mark_and_columns_in_another_order(tmp_path: Path) -> None:
    text = "\ufeffkind,Tenant,service_s, arrival_s\r\ntext,b,1,2\r\n"
    (arrival,) = load(written(tmp_path, gzip.compress(text.encode())), slots=1).arrivals
    assert arrival == Arrival(0, address_of("b"), "text", 1_000)


def test_the_lane_main_gets_another_name_because_it_would_have_to_be_the_only_one(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, HEADER + "a,0,1,main\na,0,1,text\n")
    assert load(path, slots=1).settings_for("fair").lanes == ("main-lane", "text")


def test_a_tenant_has_one_address_that_is_its_own() -> None:
    names = [f"tenant {number}" for number in range(1_000)] + ["设备", "x" * 300]
    addresses = [address_of(name) for name in names]
    assert len(set(addresses)) == len(names)
    assert addresses == [canonical(address) for address in addresses]
    assert address_of("tenant 0") == "02:7d:d8:26:f3:18:f1:02"


def test_speed_divides_all_times_and_load_moves_the_arrivals(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "".join(f"a,{at},2,text\n" for at in (0, 10, 20)))
    faster = load(path, slots=1, speed=10)
    assert [(a.at_ms, a.service_ms) for a in faster.arrivals] == [
        (0, 200),
        (1000, 200),
        (2000, 200),
    ]
    # Six seconds of work in twenty are 0.3 of a slot; for 0.6 they must come in half of the time.
    denser = load(path, slots=1, load=0.6)
    assert [(a.at_ms, a.service_ms) for a in denser.arrivals] == [
        (0, 2000), (5000, 2000), (10_000, 2000),
    ]  # fmt: skip


def test_the_heavy_devices_are_the_fewest_that_bring_half_of_the_work(tmp_path: Path) -> None:
    rows = [f"{name},0,{service},text" for name, service in (("a", 3), ("b", 2), ("c", 4))]
    groups = load(written(tmp_path, HEADER + "\n".join(rows)), slots=1).groups
    assert {name: groups[address_of(name)] for name in "abc"} == {
        "a": "heavy", "b": "light", "c": "heavy",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: the columns are missing; the first line must be tenant,arrival_s,service_s,kind"),
        ("a,1,1,text\n", ":1: the columns are a, 1, 1, text; the first line must be tenant,"),
        (HEADER, ": it has no task; write a line for each, as gateway-7,12.5,0.4,ocr"),
        (HEADER + "a,0,1,text\na,0,1\n", ":3: 3 columns, expected 4"),
        (HEADER + ",0,1,text\n", ":2: column tenant: ''; write whose task it is"),
        (HEADER + "a,soon,1,text\n", ":2: column arrival_s: 'soon'; write seconds"),
        (HEADER + "a,nan,1,text\n", ":2: column arrival_s: 'nan'; write seconds"),
        (HEADER + "a,-1,1,text\n", ":2: column arrival_s: '-1'; write seconds"),
        (HEADER + "a,1e300,1,text\n", ":2: column arrival_s: '1e300'; write seconds"),
        (HEADER + "a,1_0,1,text\n", ":2: column arrival_s: '1_0'; write seconds"),
        (HEADER + "a,0,0,text\n", ":2: column service_s: '0'; write seconds that it runs, above 0"),
        (HEADER + "a,0,inf,text\n", ":2: column service_s: 'inf'; write seconds"),
        (HEADER + "a,0,9999999,text\n", ":2: column service_s: '9999999'; write seconds"),
        (HEADER + "a,0,1,Text\n", ":2: column kind: 'Text'; write a task type in small letters"),
        (HEADER + 'a,0,1,"text\n', ":2: unexpected end of data; write as in gateway-7"),
        (HEADER.encode() + b"\xff,0,1,text\n", ": it is no UTF-8 text"),
        (b"\x1f\x8bnot gzip", ": cannot be read"),
        (gzip.compress(HEADER.encode(), mtime=0)[:12] + b"\xff" * 20, ": cannot be read"),
        (gzip.compress(HEADER.encode() * 99, mtime=0)[:-9], ": cannot be read"),
        (HEADER + "".join(f"a,0,1,k{n}\n" for n in range(101)), ": 101 kinds; 100 at most"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_what_would_be_right(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidWorkload, match=re.escape(str(path) + said)):
        load(path, slots=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"speed": 0.0}, "speed: 0.0"), ({"load": 0.0}, "load: 0.0"), ({"load": 101.0}, "load: 101")],
)
def test_a_scale_that_makes_no_sense(tmp_path: Path, options: dict[str, float], said: str) -> None:
    path = written(tmp_path, HEADER + "a,0,1,text\n")
    with pytest.raises(InvalidWorkload, match=said):
        load(path, slots=1, **options)
