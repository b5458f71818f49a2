"""What each rule takes and leaves, beyond the labelled rows: a case a line, none of them real."""

from __future__ import annotations

import pytest

from fairlane.detect.finding import FindingType
from fairlane.detect.text import detect

T = FindingType


def found(kind: FindingType, text: str) -> list[str]:
    return [finding.value for finding in detect(text) if finding.type is kind]


TAKEN = [
    # Phones: China
    (T.PHONE, "电话:+86 138 1234 5678。", ["+86 138 1234 5678"]),
    (T.PHONE, "手机＋８６１３８１２３４５６７８请联系", ["＋８６１３８１２３４５６７８"]),
    (T.PHONE, "座机010-62781234转801", ["010-62781234"]),
    (T.PHONE, "电话01062781234", ["01062781234"]),
    (T.PHONE, "(0755)8612345", ["(0755)8612345"]),
    (T.PHONE, "客服400-820-8820", ["400-820-8820"]),
    (T.PHONE, "手机tel13812345678", ["13812345678"]),
    (T.PHONE, "13812345678/13912345678,13712345678", ["13812345678", "13912345678", "13712345678"]),
    (T.PHONE, "138\u200b1234\u200b5678", ["138\u200b1234\u200b5678"]),
    # Phones: elsewhere
    (T.PHONE, "+49 151 2345 6789", ["+49 151 2345 6789"]),
    (T.PHONE, "0049 151 2345 6789", ["0049 151 2345 6789"]),
    (T.PHONE, "+1 (800) 555‑0199", ["+1 (800) 555‑0199"]),
    (T.PHONE, "call 1-800-555-0199", ["1-800-555-0199"]),
    (T.PHONE, "(212) 555-1234 x123.", ["(212) 555-1234 x123"]),
    (T.PHONE, "2024-01-15 415-555-0132", ["415-555-0132"]),
    (T.PHONE, "phone 2125551234", ["2125551234"]),
    (T.PHONE, "+44 20 7946 0958, +33 1 23 45 67 89", ["+44 20 7946 0958", "+33 1 23 45 67 89"]),
    (T.PHONE, "(+44) 20 7946 0958", ["(+44) 20 7946 0958"]),
    (T.PHONE, "0990 ٠١٢ +٩١٤١٥٥٥٥٠١٣٢", ["+٩١٤١٥٥٥٥٠١٣٢"]),
    # Identity cards
    (
        T.ID_CARD,
        "身份证号：１１０１０１１９９００３０７７４７５。",
        ["１１０１０１１９９００３０７７４７５"],
    ),
    (T.ID_CARD, "110101 19900307 7475", ["110101 19900307 7475"]),
    (T.ID_CARD, "证11010519491231002x号", ["11010519491231002x"]),
    (T.ID_CARD, "12 110101199003077475", ["110101199003077475"]),
    (T.ID_CARD, "身份证110101900307747", ["110101900307747"]),
    # Bank cards
    (T.BANK_CARD, "3782 822463 10005", ["3782 822463 10005"]),
    (T.BANK_CARD, "4111 1111 11111111", ["4111 1111 11111111"]),
    (T.BANK_CARD, "4111 1111 1111 1111 12 May", ["4111 1111 1111 1111"]),
    (T.BANK_CARD, "卡号6222 0212 3456 7890 128", ["6222 0212 3456 7890 128"]),
    (T.BANK_CARD, "4222222222222 30569309025904", ["4222222222222", "30569309025904"]),
    (T.BANK_CARD, "2223000048400011。", ["2223000048400011"]),
    # E-mail
    (T.EMAIL, "发到a.b+c@mail.example.co.uk。谢谢", ["a.b+c@mail.example.co.uk"]),
    (T.EMAIL, "ａ＠example.com", ["ａ＠example.com"]),
    (T.EMAIL, "иван@пример.рф", ["иван@пример.рф"]),
    (T.EMAIL, "abc@例子.中国", ["abc@例子.中国"]),
    (T.EMAIL, "zhang.san@公司.com.cn", ["zhang.san@公司.com.cn"]),
    (T.EMAIL, "user@[192.168.0.1]", ["user@[192.168.0.1]"]),
    (T.EMAIL, "<mailto:o'brien@example.com>", ["o'brien@example.com"]),
    (T.EMAIL, "..b@example.com, 'c@example.com'", ["b@example.com", "c@example.com"]),
    # IBAN
    (T.IBAN, "IBAN:GB29NWBK60161331926819。", ["GB29NWBK60161331926819"]),
    (T.IBAN, "de89370400440532013000", ["de89370400440532013000"]),
    (T.IBAN, "GB29 NWBK 6016 1331 9268 19 and more", ["GB29 NWBK 6016 1331 9268 19"]),
    # IP
    (T.IP, "10.0.0.1/24 [::1]:80 IP:2001:db8::1", ["10.0.0.1", "::1", "2001:db8::1"]),
    (T.IP, "地址192.168.1.1的", ["192.168.1.1"]),
    (T.IP, "fe80::1%eth0. up", ["fe80::1%eth0"]),
    (T.IP, "2001:db8::1: up", ["2001:db8::1"]),
    (T.IP, "1.2.3.4-1.2.3.9", ["1.2.3.4", "1.2.3.9"]),
    # MAC
    (T.MAC, "MAC:AA-BB-CC-DD-EE-FF;", ["AA-BB-CC-DD-EE-FF"]),
    (T.MAC, "设备00:1a:2b:3c:4d:5e上线", ["00:1a:2b:3c:4d:5e"]),
    (T.MAC, "aabb.ccdd.eeff.", ["aabb.ccdd.eeff"]),
    # Passports
    (T.PASSPORT, "护照号码：EA1234567，", ["EA1234567"]),
    (T.PASSPORT, "港澳通行证H12345678", ["H12345678"]),
    (T.PASSPORT, "Passport number: 912803456", ["912803456"]),
    # Words
    (T.KEYWORD, "这份机密文件", ["机密"]),
    (
        T.KEYWORD,
        "ＣＯＮＦＩＤＥＮＴＩＡＬ, Confidential",
        ["ＣＯＮＦＩＤＥＮＴＩＡＬ", "Confidential"],
    ),
]

LEFT = [
    # Numbers that are no phones
    (T.PHONE, "手机号12345678901、12812345678、1381234567、138123456789"),
    (T.PHONE, "订单号20240115123456789"),
    (T.PHONE, "日期2024-01-15 时间 12:30:45，2010-2020"),
    (T.PHONE, "wx13812345678 13812345678abc"),
    (T.PHONE, "1234-5678-9012, 978-3-16-148410-0, 10.0.19045.3803"),
    (T.PHONE, "phone 192.168.1.256, 3.14159265358, 31.230416 121.473701"),
    (T.PHONE, "order number 4155550132, number is 1234567"),
    (T.PHONE, "ref 7608-784097, 4385-512345, 3061-5551"),
    (T.PHONE, "550e8400-e29b-41d4-a716-446655440000"),
    (T.PHONE, "Population 1 234 567 890, SSN 078-05-1120, EIN 12-3456789"),
    # Wrong check digit, region, date
    (T.ID_CARD, "110101199003077476 100101199003077475 110101199002307475"),
    (T.ID_CARD, "1110101199003077475 A110101199003077475"),
    (T.ID_CARD, "编号110101900307747"),
    # Wrong check digit, issuer, length, neighbours
    (T.BANK_CARD, "4111111111111112 0000000000000000 7111111111111111"),
    (T.BANK_CARD, "1700000000000 411111111111116 ID4111111111111111"),
    (T.BANK_CARD, "41 11 11 11 11 11 11 11"),
    (T.EMAIL, "a@b a@b.c a@.com @example.com a.@example.com icon@2x.png"),
    (T.EMAIL, "ftp://user:pw@host.com/x"),
    (T.EMAIL, "a@192.168.0.1 a@[999.0.0.1]"),
    (T.IBAN, "GB29NWBK60161331926818 GB29NWBK601613319268191 ZZ29NWBK60161331926819"),
    (T.IP, "类型::成员 Foo::Bar v1.2.3.4 01.2.3.4 1.2.3 256.1.1.1 12:34:56"),
    (T.IP, "1:2:3:4:5:6:7:8:9 fe80::1::2 12345::1"),
    (T.MAC, "00:1A:2B:3C:4D:5E:6F 00:1A:2B:3C:4D:5E7 00:1A-2B:3C-4D:5E"),
    (T.MAC, "00:00:00:00:00:00 ff-ff-ff-ff-ff-ff FFFF.FFFF.FFFF 1122.3344.5566.7788"),
    (T.PASSPORT, "ORDERE12345678 E123456789 e12345678 EI1234567"),
    (T.KEYWORD, "confidentiality nonconfidential"),
]


@pytest.mark.parametrize(("kind", "text", "values"), TAKEN)
def test_taken(kind: FindingType, text: str, values: list[str]) -> None:
    assert found(kind, text) == values


@pytest.mark.parametrize(("kind", "text"), LEFT)
def test_left(kind: FindingType, text: str) -> None:
    assert found(kind, text) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("身份证 1101 0119 9001 0112 37", T.ID_CARD),  # and no phone inside
        ("GB29 NWBK 6016 1331 9268 19", T.IBAN),
        ("13812345678@139.com", T.EMAIL),
        ("2001:db8::10.0.0.1", T.IP),
        ("confidential@example.com", T.EMAIL),
    ],
)
def test_the_better_proof_stays(text: str, kind: FindingType) -> None:
    assert [finding.type for finding in detect(text)] == [kind]
