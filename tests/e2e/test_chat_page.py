"""The chat page in a real Chromium, on the real gateway and pipeline: what is shown, reported, kept and repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Route

from schemas.delivery import Choice, OutboundMessage
from streams.clock import fresh_id
from streams.settings import Settings
from tests.e2e.browser import chromium
from tests.e2e.system import System, running
from tests.streams.gateway.keys import WORKER, key_file

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(60)]
SMALL: Any = {"width": 400, "height": 500}
EVIL = '<img src="x" onerror="window.hacked = true"><script>window.hacked = true</script>'


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[System, Browser]]:
    """One system and one browser for all; every test is another customer in a fresh profile.

    The gateway asks for producer keys: the worker shows its own, and the page has none and needs none.
    """
    keys = key_file(tmp_path_factory.mktemp("keys"))
    settings = Settings(bootstrap_servers="none", producer_key_file=keys, gateway_key=WORKER)
    async with chromium() as browser, running(settings) as system:
        yield system, browser


@dataclass
class Customer:
    """A customer at the chat page."""

    system: System
    context: BrowserContext
    page: Page
    sender: str

    @property
    def id(self) -> str:
        """The conversation."""
        return f"demo/web/{self.sender}"

    async def hears(self, text: str = "hello", **fields: Any) -> str:
        """We send a message, through planning's topic; its id."""
        name = fresh_id("o")
        values = {"session_id": "s-1", "kind": "reply", "template_id": "t.a", "language": "en", **fields}
        await self.system.outbound(self.id, OutboundMessage(message_id=name, text=text, **values))
        return name

    async def says(self, text: str) -> None:
        """Type and press Enter."""
        await self.page.fill("textarea", text)
        await self.page.press("textarea", "Enter")

    def said(self) -> list[str]:
        """The texts that arrived."""
        return [body.text for body in self.system.bodies(self.id, "message")]

    def reported(self, state: str) -> list[str]:
        """The messages that the client reported."""
        return self.system.receipts(self.id, state)


@pytest_asyncio.fixture(loop_scope="module")
async def customer(stage: tuple[System, Browser]) -> AsyncIterator[Customer]:
    """A new customer, whose page is open."""
    system, browser = stage
    context = await browser.new_context(viewport=SMALL, locale="en-GB")
    page, sender = await context.new_page(), fresh_id("u")
    await page.goto(f"{system.url}/chat?sender={sender}")
    yield Customer(system, context, page, sender)
    await context.close()


async def until(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    """Wait for it; a test that waits in vain fails."""
    end = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < end, "it did not happen in time"
        await asyncio.sleep(0.02)


async def test_a_customer_asks_and_reads_the_answer(customer: Customer) -> None:
    """From the text field through the pipeline to the reply: displayed, read on click, rated (R-002-33, R-002-42)."""
    await customer.says("Where is my order OD100008?")
    reply = customer.page.locator(".ilk-theirs")
    await reply.first.wait_for()
    await until(lambda: len(customer.reported("displayed")) == 1)
    assert [] == customer.reported("read")
    await reply.first.locator(".ilk-text").click()
    await until(lambda: customer.reported("read") == customer.reported("displayed"))
    await reply.first.locator(".ilk-rate[value=down]").click()
    (name,) = customer.reported("read")
    await until(lambda: bool(customer.system.bodies(customer.id, "rating")))
    (rated,) = customer.system.bodies(customer.id, "rating")
    assert ("down", 1, name) == (rated.thumb, rated.score, rated.message_id)
    await until(lambda: bool(customer.system.values("feedback.signals", customer.id)[-1].kind == "rating"))
    assert 1 <= len(customer.system.bodies(customer.id, "heartbeat"))


async def test_a_message_is_reported_once(customer: Customer) -> None:
    """Clicks, a resend and a reload later it was displayed once and read once (R-002-33)."""
    name = await customer.hears()
    row = customer.page.locator(".ilk-theirs")
    await row.click()
    await until(lambda: customer.reported("read") == [name])
    again = OutboundMessage(message_id=name, session_id="s-1", kind="resend", attempt=2, template_id="t.a",
                            language="en", text="hello")  # fmt: skip
    await customer.system.outbox.put(customer.id, again)
    other = await customer.hears("another")
    await customer.page.reload()
    await until(lambda: customer.reported("displayed")[-1] == other)
    assert ([name, other], [name]) == (customer.reported("displayed"), customer.reported("read"))
    assert 2 == await row.count()


async def test_only_what_is_in_sight_is_reported(customer: Customer) -> None:
    """Scrolled away or in a hidden page a message was not displayed; it is reported when it comes into sight."""
    await customer.page.evaluate(
        "Object.defineProperty(document, 'visibilityState', {get: () => window.seen ?? 'hidden'})"
    )
    for number in range(8):
        await customer.hears(f"line {number}\n" * 8)
    await customer.page.locator(".ilk-theirs").nth(7).wait_for()
    names = [str(await row.get_attribute("data-id")) for row in await customer.page.locator(".ilk-theirs").all()]
    await asyncio.sleep(0.3)
    assert [] == customer.reported("displayed")
    await customer.page.evaluate("window.seen = 'visible'; document.dispatchEvent(new Event('visibilitychange'))")
    await until(lambda: names[-1] in customer.reported("displayed"))
    assert names[0] not in customer.reported("displayed")
    await customer.page.locator(".ilk-theirs").first.scroll_into_view_if_needed()
    await until(lambda: names[0] in customer.reported("displayed"))


async def test_a_message_taller_than_the_window_is_seen_too(customer: Customer) -> None:
    """Of a very long message no half is ever in sight: it counts when it fills half of the window."""
    name = await customer.hears("line\n" * 600)
    await until(lambda: customer.reported("displayed") == [name])


async def test_reports_wait_for_idle_time(customer: Customer) -> None:
    """While the page is busy nothing is reported; the time is that of the display (R-002-33)."""
    await customer.page.evaluate("window.requestIdleCallback = (work) => { window.idle = work; }")
    name = await customer.hears()
    await customer.page.wait_for_function("window.idle !== undefined")
    await asyncio.sleep(0.2)
    assert [] == customer.reported("displayed")
    await customer.page.evaluate("window.idle()")
    await until(lambda: customer.reported("displayed") == [name])
    receipts = customer.system.values("delivery.receipts", customer.id)
    (shown,) = [one for one in receipts if one.state == "displayed"]
    assert customer.system.now() - 60_000 < (shown.occurred_at or 0) <= customer.system.now() - 150


async def test_a_customer_who_leaves_at_once_has_seen_it(customer: Customer) -> None:
    """No idle time before the page is left: the report goes out on the way (R-002-33: a third leaves within 5 s)."""
    await customer.page.evaluate("window.requestIdleCallback = () => { window.asked = true; }")
    name = await customer.hears()
    await customer.page.wait_for_function("window.asked")
    await customer.page.goto("about:blank")
    await until(lambda: customer.reported("displayed") == [name])


async def test_a_reload_goes_on_where_it_was(customer: Customer) -> None:
    """The same customer, the messages of before, and those that came while the page was closed; each once."""
    await customer.hears("before")
    await customer.says("mine")
    await until(lambda: len(customer.reported("displayed")) >= 1 and customer.said() == ["mine"])
    await customer.page.goto("about:blank")
    await customer.hears("meanwhile")
    await customer.page.goto(f"{customer.system.url}/chat?sender={customer.sender}")
    await customer.page.get_by_text("meanwhile").wait_for()
    texts = await customer.page.locator(".ilk-text").all_inner_texts()
    assert ["before", "mine", "meanwhile"] == [text for text in texts if text in ("before", "mine", "meanwhile")]
    assert ["mine"] == customer.said()


async def test_a_customer_without_a_name_keeps_the_one_that_it_got(stage: tuple[System, Browser]) -> None:
    """The sender is random, stays in the browser over a reload, and differs between browsers."""
    system, browser = stage
    seen = []
    for _ in range(2):
        context = await browser.new_context()
        page = await context.new_page()
        for _ in range(2):
            await page.goto(f"{system.url}/chat")
            seen.append(await page.evaluate("document.querySelector('main').chat.who.sender"))
        await context.close()
    assert (seen[0], seen[2]) == (seen[1], seen[3])
    assert 2 == len(set(seen))
    assert min(map(len, seen)) >= 32


async def test_without_network_nothing_is_lost_or_doubled(customer: Customer) -> None:
    """Written offline, sent in order when the network is back; an answer that got lost makes no second event (A15)."""
    lost = 0

    async def lose(route: Route) -> None:
        nonlocal lost
        lost += 1
        await route.fetch()  # the gateway has it
        await route.abort()  # and the browser never knows

    texts = [
        f"text {number}" * 2_500 for number in range(6)
    ]  # together more than a request may have that outlives a page
    await customer.context.set_offline(True)
    for text in texts:
        await customer.says(text)
    assert 6 == await customer.page.locator(".ilk-queued").count()
    await customer.page.route("**/v1/batch", lose, times=1)
    await customer.context.set_offline(False)
    await until(lambda: lost == 1)
    await customer.page.locator(".ilk-sent").nth(5).wait_for()
    assert texts == customer.said()


async def test_what_is_refused_is_shown_as_not_sent(customer: Customer) -> None:
    """A text that no topic takes does not hold up the next one, and the customer sees that it was not sent."""
    await customer.page.evaluate("document.querySelector('main').chat.send('x'.repeat(20001))")
    await customer.says("good")
    await until(lambda: customer.said() == ["good"])
    assert ["Not sent"] == await customer.page.locator(".ilk-refused .ilk-state").all_inner_texts()


async def test_numbered_choices_are_buttons(customer: Customer) -> None:
    """A click answers with the number, once, and marks the question as read (R-002-32)."""
    choices = (Choice(number=1, label="Go on"), Choice(number=2, label="A person"))
    name = await customer.hears("Shall I go on?", choices=choices)
    await customer.page.get_by_role("button", name="2. A person").click()
    await until(lambda: customer.said() == ["2"] and customer.reported("read") == [name])
    assert 2 == await customer.page.locator(".ilk-choice:disabled").count()


async def test_a_text_is_never_markup(customer: Customer) -> None:
    """Markup in a message, a choice or the customer's own words is shown as text, also after a reload."""
    await customer.hears(EVIL, choices=(Choice(number=1, label=EVIL),))
    await customer.says(EVIL)
    await customer.page.locator(".ilk-own").wait_for()
    await customer.page.locator(".ilk-choice").first.wait_for()
    await customer.page.reload()
    await customer.page.locator(".ilk-choice").first.wait_for()
    assert EVIL in await customer.page.locator(".ilk-text").all_inner_texts()
    assert 0 == await customer.page.locator(".ilk-log img, .ilk-log script").count()
    assert not await customer.page.evaluate("window.hacked === true")


async def test_a_message_can_be_edited_and_taken_back(customer: Customer) -> None:
    """Recall and edit carry the message's own id."""
    await customer.says("wrong")
    await customer.page.get_by_role("button", name="Take back").click()
    await customer.page.locator(".ilk-recalled").wait_for()
    await customer.page.evaluate(
        "{const {chat} = document.querySelector('main'); const id = chat.send('a'); chat.edit(id, 'b');}"
    )
    await until(lambda: len(customer.system.bodies(customer.id, "edit")) == 1)
    sent = customer.system.bodies(customer.id, "message")
    taken, edited = customer.system.bodies(customer.id, "recall"), customer.system.bodies(customer.id, "edit")
    assert ([sent[0].message_id], sent[1].message_id) == ([taken[0].message_id], edited[0].message_id)


async def test_enter_of_an_input_method_sends_nothing(customer: Customer) -> None:
    """Enter that ends a word which is being composed belongs to the input method."""
    await customer.page.fill("textarea", "ni hao")
    await customer.page.evaluate(
        "document.querySelector('textarea').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, cancelable: true}))"
    )
    assert "ni hao" == await customer.page.input_value("textarea")
    assert 0 == await customer.page.locator(".ilk-own").count()


async def test_the_client_beats_every_ten_seconds(stage: tuple[System, Browser]) -> None:
    """At once, and then every 10 s: the pipeline sees who is there (R-002-37)."""
    system, browser = stage
    context, sender = await browser.new_context(), fresh_id("u")
    page = await context.new_page()
    await page.clock.install()
    await page.goto(f"{system.url}/chat?sender={sender}")
    for beats in (1, 2, 3):
        await until(lambda beats=beats: len(system.bodies(f"demo/web/{sender}", "heartbeat")) == beats)  # type: ignore[misc]
        await page.clock.run_for(10_000)
    await context.close()
