"""An HTTP/1.1 connection: framing, pipelining, deadlines, and the end."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from time import monotonic

from service.connection import limits
from service.connection.accepting import Address
from service.connection.channel import Channel
from service.connection.deadlines import Deadlines
from service.connection.door import Door
from service.connection.exchange import Exchange
from service.connection.learned_heads import HeadReader
from service.connection.parse import plain_request
from service.connection.pipelining import HeldInput
from service.connection.request_parser import RequestParser, RequestRefused
from service.request.errors import problem
from service.request.pipeline import Pipeline
from service.request.request import Request, new_request_id
from service.request.resolve import DISPATCH
from service.request.respond import CLOSE
from service.request.response import STATUS_LINES, Response, lines_of

log = logging.getLogger("forecast.access")


class Connection:
    """One connection, from its first byte until it is lost; its listener's polling owns it.

    Requests are taken one after the other: what arrives behind one that is under way is held, and nothing is read
    meanwhile, so that a client costs what one request costs. A plain request is answered by the pipeline. Any other
    goes to the parser, and then to the application, in an exchange.

    An answer that begins before the whole request has arrived closes the connection: the next request might be read
    from the middle of this one. A request whose rest cannot be read has one answer, a refusal.
    """

    __slots__ = ("__weakref__", "_checked", "_deadlines", "_door", "_exchange", "_held", "_ignores", "_over", "_parser",
                 "_pipeline", "_turn", "_waits", "address", "asked_at", "channel", "closes", "reader",
                 "turned_away")  # fmt: skip

    channel: Channel

    def __init__(self, door: Door, address: Address) -> None:
        self.address = address
        self.asked_at = now = monotonic()  # when it began, or the parser last saw a request begin
        self.closes = False  # with the next answer
        self.reader = HeadReader(door.fields, address[0])
        self._door = door
        self._deadlines = Deadlines(self, door, now)
        self._held = HeldInput()
        self._ignores = False  # whatever arrives
        self._turn: asyncio.Handle | None = None  # of the loop, that goes on with what is held
        # the request under way
        self._waits = False  # for the pipeline
        self._checked: Request | None = None  # which the application answers
        self._parser: RequestParser | None = None  # made when it is needed
        self._exchange: Exchange | None = None  # of the request that the parser reads, or has read last
        connections = door.state.connections
        connections.add(self)  # type: ignore[arg-type]  # uvicorn calls `shutdown` of what is in there
        self._over = len(connections) - door.most_connections
        self.turned_away = self._over > 0 and not door.make_room(self)
        self._pipeline = None if self.turned_away else door.pipeline

    # --- the channel ---------------------------------------------------------------------------------------------

    def opened(self) -> None:
        if not self._is_reset():
            self._deadlines.watch()

    def _is_reset(self) -> bool:
        """Resets the connection if too many are waiting for their refusal; returns whether it did."""
        if not self.turned_away or self._over <= limits.MOST_TURNED_AWAY:
            return False
        self._door.rejected("unavailable")
        self.channel.reset()
        return True

    def received(self, data: bytes, now: float) -> None:
        if self._ignores:
            return
        is_held_up = self._waits or self._held.data or self.channel.is_blocked
        if self._parser is not None:
            is_held_up = is_held_up or self.is_busy or self.is_in_message
        if is_held_up or not self._answer(data, now):
            self._held.add(data)
            self._go_on()

    def received_end(self) -> None:
        self.close()

    def blocked(self) -> None:
        if self._exchange is not None:
            self._exchange.block()

    def unblocked(self) -> None:
        if self._exchange is not None:
            self._exchange.unblock()
        self._guard(self._go_on)

    def lost(self) -> None:
        self._door.state.connections.discard(self)
        self._end()
        self._deadlines.end()
        if self._turn is not None:
            self._turn.cancel()
        if self._parser is not None:
            self._parser.end()
        # they refer to the connection, which would otherwise stay until garbage is collected
        self._parser = self._exchange = self._turn = None

    # --- arrival -------------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """A request is under way."""
        return self._waits or (self._exchange is not None and self._exchange.is_under_way)

    @property
    def is_waited_for(self) -> bool:
        """Its client waits for an answer, and reads it."""
        return self.is_busy and not self.channel.is_blocked

    @property
    def is_in_message(self) -> bool:
        """A request has arrived in part."""
        return self._parser is not None and self._parser.in_message

    def _read_or_wait(self) -> None:
        self.channel.read(not self._held.data and (self._exchange is None or self._exchange.reads))

    def _go_on_later(self) -> None:
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._guard, self._go_on)

    def _guard(self, act: Callable[[], None]) -> None:
        """A defect ends the connection: nothing else would."""
        try:
            act()
        except Exception:
            log.exception("what arrived on a connection could not be answered")
            self.channel.abort()

    def _go_on(self) -> None:
        """Takes what is held, head by head, until a request has to be waited for or others should have their turn."""
        self._turn = None
        until = monotonic() + limits.TURN_SECONDS
        while self._held.data and (self.is_in_message or not (self.is_busy or self.channel.is_blocked)):
            if (now := monotonic()) > until:
                self._go_on_later()
                break
            piece = self._held.next_piece(self._parser)
            if self.is_in_message or not self._answer(piece, now):
                self._parse(piece)
        self._start_exchange()
        if not self.channel.ends:
            self._read_or_wait()

    # --- the pipeline --------------------------------------------------------------------------------------------

    def _answer(self, head: bytes, now: float) -> bool:
        """Answers a plain request by the pipeline. Returns whether it was one."""
        pipeline = self._pipeline
        if pipeline is None:
            return False
        request = plain_request(head, self.reader, self._door.resolver, now)
        if request is None:
            return False
        outcome = pipeline.run(request)
        if isinstance(outcome, Response):
            self._respond(pipeline, request, outcome, now)
        else:
            self._waits, self._deadlines.arrives_since = True, None
            outcome.add_done_callback(partial(self._finish, pipeline, request))
        return True

    def _respond(self, pipeline: Pipeline, request: Request, response: Response, now: float) -> None:
        if response is DISPATCH:
            self._checked = request
            self._parse(request.head)
            self._start_exchange()
            return
        if self.closes or now >= self._deadlines.old_at:
            request.closes = True
        if self.reader.news is not None:  # now it is known whether its key is good
            self.reader.learn(verified=request.key is not None)
        head, body = pipeline.finish(request, response, self._door.dates)
        self.channel.write(head, body)
        self._deadlines.arrives_since, self._deadlines.answered_at = None, now
        if request.closes:
            self.close()

    def _finish(self, pipeline: Pipeline, request: Request, task: "asyncio.Task[Response]") -> None:
        """The request that waited can be answered."""
        response = problem("unavailable") if task.cancelled() else task.result()
        self._waits = False
        if self.channel.ends:
            if response.status == 401:  # a scan counts, also one that hangs up
                pipeline.finish(request, response, b"")
            return
        self._guard(lambda: self._respond(pipeline, request, response, monotonic()))
        if self._held.data:
            self._guard(self._go_on)

    # --- the parser, and the application -------------------------------------------------------------------------

    def _parse(self, data: bytes) -> None:
        """Reads bytes of one request."""
        if self._is_reset():
            return
        parser = self._parser
        if parser is None:
            parser = self._parser = RequestParser(self)
        try:
            parser.feed(data)
        except RequestRefused as refused:
            self._refuse(refused.code, refused.advice)
            return
        if parser.in_message or not self.is_busy:
            self._deadlines.arriving()

    def begin(self) -> None:
        """Makes the exchange of the request that the parser has read; it starts later."""
        parser, checked, self._checked = self._parser, self._checked, None
        assert parser is not None  # noqa: S101 - which calls this
        self.asked_at = monotonic()
        self._exchange = Exchange(self, self._door, parser, self.address, checked)
        if parser.is_tunnel:  # what follows may not be HTTP
            self._ignores = True
            self._held.clear()
        self._keep_or_close()

    def body_read(self, body: bytes) -> None:
        if self._exchange is not None:
            self._exchange.body_read(body)

    def message_read(self) -> None:
        self._deadlines.arrives_since = None
        if self._exchange is not None:
            self._exchange.message_read()
            self._keep_or_close()

    def _keep_or_close(self) -> None:
        if monotonic() >= self._deadlines.old_at:
            self.closes = True
        if self._exchange is not None:
            self._exchange.keep_or_close(closes=self.closes)

    def _start_exchange(self) -> None:
        """Not before all that is held of its body is read: whether it is whole decides about the connection."""
        if self._exchange is not None and not (self._held.data and self.is_in_message):
            self._exchange.start()

    # --- the transport of an exchange ----------------------------------------------------------------------------

    def answered(self) -> None:
        self._door.state.total_requests += 1
        if self.is_closing():
            return
        self._deadlines.answered_at = monotonic()
        self._read_or_wait()
        if self._held.data:
            self._go_on_later()

    def write(self, data: bytes) -> None:
        self.channel.write(b"", data)

    def is_closing(self) -> bool:
        return self.channel.ends

    def pause_reading(self) -> None:
        self._read_or_wait()

    def resume_reading(self) -> None:
        self._read_or_wait()

    # --- refusals, and the end -----------------------------------------------------------------------------------

    def _refuse(self, code: str, advice: str | None = None) -> None:
        """The only answer to a request whose rest cannot be read. Those before it are answered already."""
        door, exchange, parser = self._door, self._exchange, self._parser
        self._ignores, self._deadlines.arrives_since = True, None
        self._held.clear()
        door.rejected(code)
        has_begun = parser is not None and parser.in_message and not parser.is_arriving
        if exchange is not None and has_begun and not exchange.is_answered:
            exchange.disconnect()
        elif self.is_busy:
            return  # its answer has begun, and closes the connection
        request_id = new_request_id()
        response = door.refusal(code, request_id, self.address[0], advice)
        lines, body = response.whole(request_id)
        tail = lines_of(((b"x-request-id", request_id), CLOSE))
        head = b"".join((STATUS_LINES[response.status], door.dates, lines, tail, b"\r\n"))
        self.channel.write(head, body)
        self.channel.close(more_may_arrive=True)
        self._end()

    def close(self) -> None:
        """What was written arrives; nothing else is."""
        self.channel.close(more_may_arrive=self._exchange is not None and self._exchange.in_doubt)
        self._end()

    def _end(self) -> None:
        self._ignores = True
        self._held.clear()
        if self._exchange is not None:
            self._exchange.disconnect()

    def expire(self) -> None:
        """What was to arrive did not in time."""
        if self.is_closing():
            return
        parser = self._parser
        is_unanswered = self._exchange is None or not self._exchange.is_answered
        if parser is not None and parser.in_message and (parser.is_arriving or is_unanswered):
            self._refuse("request_timeout")
        else:
            self.close()  # silent, or still sending what is answered: there is nothing to answer

    def shutdown(self) -> None:
        """The server stops: what is under way is answered, and a request may be on its way. Then the connection is
        closed."""
        self.closes = True
        if self._exchange is not None:
            self._exchange.close_behind()
        if not self.is_closing():
            self._deadlines.stop()
