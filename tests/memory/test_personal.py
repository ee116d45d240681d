"""Masking of names after their cue and of postal addresses, in Chinese and English text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.masking import hide, mask


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("我叫王**，要退款", "我叫王小明，要退款"),
        ("收件人：李*，电话138****0000", "收件人：李雷，电话13800000000"),
        ("收件人王*电话138****0000", "收件人王芳电话13800000000"),
        ("姓名:欧***", "姓名:欧阳娜娜"),
        ("收件人阿***·买**", "收件人阿依古丽·买买提"),
        ("我是张*，", "我是张伟，"),
        ("my name is J*** S****", "my name is John Smith"),
        ("My name is j*** s**** and my phone", "My name is john smith and my phone"),
        ("I'm A*** F******, please", "I'm Anna Freeman, please"),
        ("Mr. L****'s invoice", "Mr. Lopez's invoice"),
    ],
)
def test_a_name_after_its_cue_keeps_its_first_letter(shown: str, text: str) -> None:
    """A name that a cue announces is masked, touching other words or not (promise 9, case F09)."""
    assert shown == mask(text)[0]
    assert "name" in [item.kind for item in mask(text)[1]]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("改成上海市浦东新区********，电话138****0000", "改成上海市浦东新区世纪大道100号，电话13800000000"),
        (
            "寄到浙江省杭州市西湖区********************，谢谢",
            "寄到浙江省杭州市西湖区文三路478号华星时代广场3幢1502室，谢谢",
        ),
        ("我家在朝阳区**************", "我家在朝阳区和平里七区3号楼2单元501"),
        ("住在*************", "住在幸福小区3栋2单元501室"),
        ("请改成********", "请改成世纪大道100号"),
        (
            "ship to *** ********* *******, Springfield, IL *****",
            "ship to 742 Evergreen Terrace, Springfield, IL 62704",
        ),
        ("** **** ****** *** **", "12 main street apt 4b"),
    ],
)
def test_of_an_address_the_region_stays(shown: str, text: str) -> None:
    """Street, house and zip code are masked; province, city and what was said before it stay (promise 9)."""
    assert shown == mask(text)[0]
    assert "address" in [item.kind for item in mask(text)[1]]


@pytest.mark.parametrize(
    "text",
    [
        "我叫什么名字", "收件人方便吗", "我叫你退款", "我是黄金会员", "我是来退款的", "我是从北京来的",
        "我觉得我是路痴，", "坐地铁1号线到长安街1号线", "我知道1号发货", "5月1号到，走2路车",
        "200801000001，收件人甲", "流水20138000000001234",
        "my name is misspelled on it", "2 days on the road", "I bought 2 long drive shirts", "order 1001 Main item",
    ],
)  # fmt: skip
def test_other_words_stay(text: str) -> None:
    """Questions, numbers, metro lines and dates are neither names nor addresses (case F07)."""
    assert (text, []) == mask(text)


def test_a_value_of_a_known_field_is_hidden_whatever_its_shape() -> None:
    """What the context tells to be an address or a name needs no shape to be hidden (promise 9)."""
    assert "***" == hide("address", "老地方")
    assert "上海市静安区****" == hide("address", "上海市静安区B路2号")
    assert "K***" == hide("name", "Kofi")


_PIECES = st.sampled_from([
    "我叫", "王小明", "地址", "上海市", "浦东新区", "世纪大道", "100号", "3栋", "，", "收件人：", "小区", "区", "路",
    "my name is ", "John ", "12 ", "Main ", "Street ", "13800000000", "*", "1",
])  # fmt: skip


@given(st.lists(_PIECES, max_size=14).map("".join))
def test_masking_masked_names_and_addresses_changes_nothing(text: str) -> None:
    """Masking is idempotent and keeps the length, whatever stands beside what (promise 9)."""
    masked, _ = mask(text)
    assert (masked, []) == mask(masked)
    assert len(text) == len(masked)


@pytest.mark.parametrize(
    "piece", ["市路", "市路1号", "区1", "我叫", "my name is ", "mr Ab ", "路1号楼", "1 Ab Street ", "苑一"]
)
def test_a_long_text_is_masked_in_bounded_time(piece: str) -> None:
    """No pattern runs away on the longest text that a topic takes (case E15)."""
    text, started = (piece * 20_000)[:19_999], time.perf_counter()
    mask(text)
    assert time.perf_counter() - started < 5  # measured: 0.6 s at most
