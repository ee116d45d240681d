"""Identity links that must not be: circles, two hops, weak proofs, another shop, too many."""

from __future__ import annotations

import pytest

from tests.promises.stand import Stand, whole
from tests.streams.linking import ROOT, both, link, root_of, rules, templates, why


@pytest.mark.parametrize("first", ["wechat", "web"])
def test_two_links_in_a_circle_are_refused(first: str) -> None:
    """The second link of a circle is refused where it comes in, and the first one stands (R-003-05)."""

    async def body(stand: Stand) -> None:
        people = list(await both(stand))
        if first == "web":
            people.reverse()
        one, two = people
        await link(one, two.conversation)
        await link(two, one.conversation)
        assert (two.conversation, None) == (root_of(one), root_of(two))
        assert "circle" in why(two, "identity.refused")
        await one.say("你好")
        assert ["common.greeting"] == templates(one)

    whole(body)


def test_a_circle_in_the_same_moment_ends() -> None:
    """Both links taken before either is known to the other: both come back, nobody is linked, each talks (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT, ms=0)
        await link(web, wechat.conversation, ms=0)
        await wechat.write("你好")
        await web.write("你好")
        await stand.pass_ms(3_000)
        assert {"identity.linked", "identity.sent_back", "identity.refused"} <= set(rules(wechat)) & set(rules(web))
        assert [None, None] == [root_of(wechat), root_of(web)]
        count = len(stand.values("channel.events"))
        await wechat.say("你好")
        await web.say("你好")
        assert count + 2 == len(stand.values("channel.events"))
        assert 2 == len(templates(wechat)) == len(templates(web))

    whole(body, partitions=12)


@pytest.mark.parametrize("gap_ms", [1_000, 0])
def test_two_hops_are_refused(gap_ms: int) -> None:
    """A conversation that others are linked to is linked to none, and none is linked to a linked one (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        app = await stand.person("a-1", channel="app")
        await link(app, wechat.conversation, ms=gap_ms)
        await link(wechat, ROOT, ms=3_000)
        linked = {one.conversation: root_of(one) for one in (app, wechat, web) if root_of(one)}
        assert 1 == len(linked)
        if gap_ms:
            assert "two hops away" in why(wechat, "identity.refused")
        other = await stand.person("a-2", channel="app")
        await link(other, next(iter(linked)), ms=3_000)
        assert root_of(other) is None
        assert "linked to" in why(other, "identity.refused")
        await other.say("你好")
        assert ["common.greeting"] == templates(other)

    whole(body, partitions=12)


@pytest.mark.parametrize(
    ("root", "proof", "said"),
    [
        (ROOT, "nickname", "no proof"),
        (ROOT, "name", "no proof"),
        (ROOT, "avatar", "no proof"),
        (ROOT, "address", "no proof"),
        ("demo/wechat/w-1", "login", "itself"),
        ("other/web/c-zh-refund", "login", "another shop"),
        ("demo/web/ c", "login", "can't be a conversation"),
        ("demo/web/c\u200b", "login", "can't be a conversation"),
        (f"demo/web/{'x' * 65}", "login", "can't be a conversation"),
    ],
)
def test_a_link_in_doubt_joins_nobody(root: str, proof: str, said: str) -> None:
    """A weak proof, another shop, itself, or what is no conversation: refused with its reason (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, root, proof=proof)
        assert said in why(wechat, "identity.refused")
        assert root_of(wechat) is None
        await wechat.say("你好")
        assert ["common.greeting"] == templates(wechat)
        assert {} == web.state

    whole(body)


def test_a_root_takes_so_many_and_no_more() -> None:
    """A customer of more than 20 conversations is none: the link comes back, and the conversation talks (R-003-05)."""

    async def body(stand: Stand) -> None:
        people = [await stand.person(f"w-{number}", channel="wechat") for number in range(21)]
        for person in people:
            await link(person, ROOT)
        assert [ROOT] * 20 + [None] == [root_of(person) for person in people]
        assert "20 conversations" in why(people[-1], "identity.refused")

    whole(body)
