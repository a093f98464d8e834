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

    Requests are handled one after the other: bytes that arrive during one are held, and no more are read meanwhile, so
    that a client costs no more than one request. The pipeline answers plain requests. Any other one goes to the parser,
    and then to the application, in an exchange.

    An answer that begins before the whole request has arrived closes the connection: the next request might be read
    from the middle of this one. A request whose rest is unreadable gets one answer, a refusal.
    """

    __slots__ = ("__weakref__", "_checked", "_deadlines", "_door", "_exchange", "_held", "_ignores",
                 "_over", "_parser", "_pipeline", "_turn", "_waits", "address", "began_at", "channel",
                 "closes", "is_over_limit", "reader")  # fmt: skip

    channel: Channel

    def __init__(self, door: Door, address: Address) -> None:
        self.address = address
        self.began_at = now = monotonic()  # when it began, or the parser last saw a request begin
        self.closes = False  # with the next answer
        self.reader = HeadReader(door.fields, address[0])
        self._door = door
        self._deadlines = Deadlines(self, door, now)
        self._held = HeldInput()
        self._ignores = False  # whatever arrives
        self._turn: asyncio.Handle | None = None  # the loop's call that continues with held bytes
        # the request under way
        self._waits = False  # for the pipeline
        self._checked: Request | None = None  # which the application answers
        self._parser: RequestParser | None = None  # created when needed
        self._exchange: Exchange | None = None  # of the parser's current or last request
        connections = door.state.connections
        connections.add(self)  # type: ignore[arg-type]  # uvicorn calls `shutdown` of its members
        self._over = len(connections) - door.most_connections
        self.is_over_limit = self._over > 0 and not door.make_room(self)
        self._pipeline = None if self.is_over_limit else door.pipeline

    # --- the channel ---------------------------------------------------------------------------------------------

    def opened(self) -> None:
        if not self._is_reset():
            self._deadlines.watch()

    def _is_reset(self) -> bool:
        """Resets the connection if too many are waiting for their refusal; returns whether it did."""
        if not self.is_over_limit or self._over <= limits.MOST_OVER_LIMIT:
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
            self._continue()

    def received_end(self) -> None:
        """Closes behind the answer to a request under way: the client may still read it."""
        if self.is_busy and not self.is_in_message:
            self.shutdown()
        else:
            self.close()

    def blocked(self) -> None:
        if self._exchange is not None:
            self._exchange.block()

    def unblocked(self) -> None:
        if self._exchange is not None:
            self._exchange.unblock()
        self._guard(self._continue)

    def lost(self) -> None:
        self._door.state.connections.discard(self)
        self._end()
        self._deadlines.end()
        if self._turn is not None:
            self._turn.cancel()
        if self._parser is not None:
            self._parser.end()
        # they refer to the connection, which would otherwise stay until a garbage collection
        self._parser = self._exchange = self._turn = None

    # --- arrival -------------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        return self._waits or (self._exchange is not None and self._exchange.is_under_way)

    @property
    def is_waited_for(self) -> bool:
        """Whether its client waits for an answer, and reads it."""
        return self.is_busy and not self.channel.is_blocked

    @property
    def is_in_message(self) -> bool:
        """Whether a request has arrived in part."""
        return self._parser is not None and self._parser.in_message

    def _read_or_wait(self) -> None:
        self.channel.read(not self._held.data and (self._exchange is None or self._exchange.reads))

    def _continue_later(self) -> None:
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._guard, self._continue)

    def _guard(self, act: Callable[[], None]) -> None:
        """Ends the connection after a defect, as no other code would."""
        try:
            act()
        except Exception:
            log.exception("a request on a connection could not be answered")
            self.channel.abort()

    def _continue(self) -> None:
        """Handles held bytes, head by head, until a request must wait or other connections should have their turn."""
        self._turn = None
        until = monotonic() + limits.TURN_SECONDS
        while self._held.data and (self.is_in_message or not (self.is_busy or self.channel.is_blocked)):
            if (now := monotonic()) > until:
                self._continue_later()
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
            pipeline.admission.begin(request)
            self._checked = request
            self._parse(request.head)
            self._start_exchange()
            return
        if self.closes or now >= self._deadlines.old_at:
            request.closes = True
        if self.reader.news is not None:  # by now its key is verified, or not
            self.reader.learn(verified=request.key is not None)
        head, body = pipeline.finish(request, response, self._door.dates)
        self.channel.write(head, body)
        self._deadlines.arrives_since, self._deadlines.answered_at = None, now
        if request.closes:
            self.close()

    def _finish(self, pipeline: Pipeline, request: Request, task: "asyncio.Task[Response]") -> None:
        """Answers the request that waited."""
        response = problem("unavailable") if task.cancelled() else task.result()
        self._waits = False
        if self.channel.ends:
            pipeline.admission.end(request)
            if response.status == 401:  # a scan counts, even if it hangs up
                pipeline.finish(request, response, b"")
            return
        self._guard(lambda: self._respond(pipeline, request, response, monotonic()))
        if response is not DISPATCH:
            pipeline.admission.end(request)
        if self._held.data:
            self._guard(self._continue)

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
        """Creates the exchange of the request that the parser has read; it starts later."""
        parser, checked, self._checked = self._parser, self._checked, None
        assert parser is not None  # noqa: S101 - which calls this
        self.began_at = monotonic()
        self._exchange = Exchange(self, self._door, parser, self.address, checked)
        if parser.is_tunnel:  # later bytes may not be HTTP
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
        """Starts the exchange once its buffered body is read: whether that is whole decides about the connection."""
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
            self._continue_later()

    def write(self, data: bytes) -> None:
        self.channel.write(b"", data)

    def is_closing(self) -> bool:
        return self.channel.ends

    pause_reading = resume_reading = _read_or_wait  # which asks the exchange

    # --- refusals, and the end -----------------------------------------------------------------------------------

    def _refuse(self, code: str, advice: str | None = None) -> None:
        """Sends the only answer to a request whose rest cannot be read. Those before it are answered already."""
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
        """Closes after all written bytes are sent; nothing else is."""
        self.channel.close(more_may_arrive=self._exchange is not None and self._exchange.in_doubt)
        self._end()

    def _end(self) -> None:
        self._ignores = True
        self._held.clear()
        if self._exchange is not None:
            self._exchange.disconnect()

    def expire(self) -> None:
        """Ends the connection because the bytes that it waited for did not arrive in time."""
        if self.is_closing():
            return
        parser = self._parser
        is_unanswered = self._exchange is None or not self._exchange.is_answered
        if parser is not None and parser.in_message and (parser.is_arriving or is_unanswered):
            self._refuse("request_timeout")
        else:
            self.close()  # silent, or still sending an answered request: there is none to answer

    def shutdown(self) -> None:
        """Stops: answers requests under way and one that may be arriving, then closes the connection."""
        self.closes = True
        if self._exchange is not None:
            self._exchange.close_behind()
        if not self.is_closing():
            self._deadlines.stop()
