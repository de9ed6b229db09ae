"""The circuit breaker's state machine in Redis or Valkey: one state for all processes.

Each decision is one script, so it is atomic; time is the server's, so clock skew does not matter.
"""

from idempotency.resilience.breakerlocal import BUCKETS
from idempotency.resilience.breakerstate import (
    BreakerSettings,
    BreakerState,
    Change,
    Decision,
    Force,
    Snapshot,
)
from idempotency.resilience.store import SharedStore
from idempotency.resilience.table import Vote

# KEYS: the state (hash), the probes under way (sorted set by end of lease), the calls (hash).
# ARGV: command, token or force, generation or actor, vote or reason; then the settings in ms.
_SCRIPT = """
local s, p, c = KEYS[1], KEYS[2], KEYS[3]
local command, token = ARGV[1], ARGV[2]
local window, min_calls, ratio, open_ms, probes, successes, lease, buckets =
  tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]),
  tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', s, 'state', 'generation', 'until', 'forced', 'actor', 'reason')
local state, generation = h[1] or 'closed', tonumber(h[2] or '0')
local open_until, forced = tonumber(h[3] or '0'), h[4]
local shown = forced or state

-- A generation is a time, so that one begun after the store lost its data is not an old one's.
local function move(to)
  state, generation = to, math.max(generation + 1, now)
  redis.call('HSET', s, 'state', to, 'generation', generation, 'succeeded', 0)
  redis.call('PEXPIRE', s, math.max(open_ms * 20, 86400000))
  redis.call('DEL', p, c)
end

local function same()
  return {shown, shown, ''}
end

local function trip(cause)
  local before = state
  move('open')
  redis.call('HSET', s, 'until', now + open_ms)
  return {before, 'open', cause}
end

local function seen()
  local calls, failures, oldest = 0, 0, math.floor(now / (window / buckets)) - buckets
  local flat = redis.call('HGETALL', c)
  for i = 1, #flat, 2 do
    local bucket, kind = string.match(flat[i], '^(%d+):(%a+)$')
    if tonumber(bucket) <= oldest then
      if command == 'record' then redis.call('HDEL', c, flat[i]) end
    else
      calls = calls + flat[i + 1]
      if kind == 'failure' then failures = failures + flat[i + 1] end
    end
  end
  return calls, failures
end

if command == 'acquire' then
  if forced == 'forced_open' then return {0, generation, open_ms, shown, shown, ''} end
  if forced then return {1, generation, 0, shown, shown, ''} end
  if state == 'open' then
    if open_until > now then return {0, generation, open_until - now, shown, shown, ''} end
    move('half_open')
  end
  if state == 'half_open' then
    redis.call('ZREMRANGEBYSCORE', p, '-inf', now)
    if redis.call('ZCARD', p) >= probes then
      return {0, generation, math.min(open_ms, 1000), shown, state, 'timer'}
    end
    redis.call('ZADD', p, now + lease, token)
    redis.call('PEXPIRE', p, lease)
  end
  return {1, generation, 0, shown, state, 'timer'}
end

if command == 'record' then
  local until_ = tonumber(redis.call('ZSCORE', p, token) or '0')
  redis.call('ZREM', p, token)
  local vote = ARGV[4]
  if forced or generation ~= tonumber(ARGV[3]) or vote == 'no vote' then return same() end
  if state == 'half_open' then
    if until_ <= now then return same() end
    if vote == 'failure' then return trip('probe-failed') end
    if redis.call('HINCRBY', s, 'succeeded', 1) < successes then return same() end
    move('closed')
    return {'half_open', 'closed', 'probes-succeeded'}
  end
  if state ~= 'closed' then return same() end
  redis.call('HINCRBY', c, math.floor(now / (window / buckets)) .. ':' .. vote, 1)
  redis.call('PEXPIRE', c, window * 2)
  local calls, failures = seen()
  if calls >= min_calls and failures / calls >= ratio then return trip('failures') end
  return same()
end

if command == 'force' then
  move('closed')
  redis.call('HDEL', s, 'forced', 'actor', 'reason')
  local after = 'closed'
  if token ~= 'clear' then
    after = 'forced_' .. token
    redis.call('HSET', s, 'forced', after, 'actor', ARGV[3], 'reason', ARGV[4])
    redis.call('PERSIST', s)
  end
  return {shown, after, 'staff'}
end

local calls, failures = seen()
local left = 0
if state == 'open' then left = math.max(0, open_until - now) end
return {shown, calls, failures, redis.call('ZCOUNT', p, '(' .. now, '+inf'), left,
        h[5] or '', h[6] or ''}
"""


class SharedMachine:
    """The state of one breaker in a shared store.

    Every method raises StoreUnavailable where the store does not answer.
    """

    def __init__(self, name: str, settings: BreakerSettings, store: SharedStore) -> None:
        self._run = store.script(_SCRIPT)
        # One hash slot, so that the script also runs on a cluster.
        self._keys = [
            f"idempotency:breaker:{{{name}}}:{part}" for part in ("state", "probes", "calls")
        ]
        self._settings: list[str | float] = [
            round(settings.window * 1000),
            settings.min_calls,
            settings.ratio,
            round(settings.open_seconds * 1000),
            settings.probes,
            settings.successes,
            round(settings.lease * 1000),
            BUCKETS,
        ]

    def acquire(self, token: str) -> Decision:
        """Decide whether a call may begin; in half-open the token leases a probe's place."""
        answer = self._ask("acquire", token)
        allowed, generation, retry_ms = (int(number) for number in answer[:3])
        return Decision(bool(allowed), generation, retry_ms / 1000, _change(answer[3:]))

    def record(self, token: str, generation: int, vote: Vote) -> Change:
        """Count how a call ended, and free its probe's place."""
        return _change(self._ask("record", token, str(generation), vote))

    def force(self, force: Force, *, actor: str, reason: str) -> Change:
        """Do what staff decided."""
        return _change(self._ask("force", force, actor, reason))

    def snapshot(self) -> Snapshot:
        """Return the state without changing it."""
        state, calls, failures, probes, left_ms, actor, reason = self._ask("snapshot")
        return Snapshot(
            state=BreakerState(_text(state)),
            calls=int(calls),
            failures=int(failures),
            probes=int(probes),
            open_for=int(left_ms) / 1000,
            actor=_text(actor),
            reason=_text(reason),
            shared=True,
        )

    def _ask(
        self, command: str, token: str = "", third: str = "", fourth: str = ""
    ) -> list[bytes | str | int]:
        return self._run(self._keys, [command, token, third, fourth, *self._settings])


def _change(answer: list[bytes | str | int]) -> Change:
    before, after, cause = (_text(part) for part in answer)
    return Change(BreakerState(before), BreakerState(after), cause)


def _text(value: bytes | str | int) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
