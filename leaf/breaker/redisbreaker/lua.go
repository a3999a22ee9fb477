package redisbreaker

// The key is a hash. Its fields:
//
//	s f         state (0 closed, 1 open, 2 half-open) and force (0, 1)
//	g v         generation, and revision within it (a force that changes no state)
//	o w t n     the last opening: since (µs), for how long (µs), the same before jitter (µs), re-openings before it
//	k           half-open: probes that succeeded
//	x           closed: failures in a row
//	y           why it is so
//	z           the tokens of the last controls, newest first
//	r:ID        a reporter: its last batch's number, when it last had a failure, when it was last heard (µs)
//	p:TOKEN     a probe: since (µs), lease (µs); it stays when the lease is over, so that a late result counts once
//	d:TOKEN     a probe without a lease that has succeeded
//	b0…b9 SIG   a time window's buckets: number since 1970, calls, failures, slow calls
//	ring SIG    a count window: one digit per result, oldest first: 1 failed + 2 slow
//	mark SIG    how many of them came in which tenth of Within
//	c           when reporters were last cleared up
//
// A change of state empties all but the first three groups. A window is named after its size (SIG), so that processes with
// different ones (a new version that rolls out) do not empty each other's; once a minute what is out of date goes (a ring without
// Within never is). A missing field is 0, and one that is no number too.
//
// ARGV[2] is the life of an idle key in ms (-1 = for ever); ARGV[3…11] is what the process knows: generation, revision, state,
// force, opening (4), why. A process that knows more than the store gives it back: the store has lost it.
const luaCommon = `
local CLOSED, OPEN, HALF = 0, 1, 2
local function num(x)
  x = tonumber(x)
  if x and x >= 0 and x < 9007199254740992 then return math.floor(x) end
  return 0
end
local ttl = tonumber(ARGV[2])
local f = redis.call('HMGET', key, 's', 'f', 'g', 'v', 'o', 'w', 't', 'n', 'k', 'x', 'y', 'z')
local S = {state = num(f[1]), forced = num(f[2]), gen = num(f[3]), rev = num(f[4]), since = num(f[5]), wait = num(f[6]),
  open = num(f[7]), re = num(f[8]), ok = num(f[9]), row = num(f[10]), why = f[11] or '', ctl = f[12] or ''}
if S.state > HALF then S.state = CLOSED end

-- What is left of len from since on; an instant in the future is void: the clock went back.
local function remains(since, len)
  if now < since or now - since >= len then return 0 end
  return len - (now - since)
end

local function left()
  if S.state == OPEN and S.forced == 0 then return remains(S.since, S.wait) end
  return 0
end

local function save()
  redis.call('HSET', key, 's', S.state, 'f', S.forced, 'g', int(S.gen), 'v', int(S.rev), 'o', int(S.since), 'w', int(S.wait),
    't', int(S.open), 'n', int(S.re), 'k', int(S.ok), 'x', int(S.row), 'y', S.why, 'z', S.ctl)
end

-- A generation begins: nothing that was counted or is out belongs to it. Every change of state is made here.
local function enter(state, why)
  S.state, S.why, S.ok, S.row, S.rev = state, why, 0, 0, 0
  S.gen = math.max(S.gen + 1, now)
  redis.call('DEL', key)
  save()
end

local function close(why)
  S.forced, S.since, S.wait, S.open, S.re = 0, 0, 0, 0, 0
  enter(CLOSED, why)
end

local function trip(open, wait, re, why)
  S.since, S.wait, S.open, S.re = now, wait, open, re
  enter(OPEN, why)
end

-- Losing the key while the circuit is open would admit.
local function live()
  if ttl < 0 then redis.call('PERSIST', key) else expire(math.max(ttl, left() / 1000)) end
end

local function adopt()
  local gen, rev = num(ARGV[3]), num(ARGV[4])
  if gen < S.gen or gen == S.gen and rev <= S.rev then return end
  local counts = S.state == CLOSED and num(ARGV[5]) == CLOSED
  -- A generation of the future, by more than a few transitions at once: the clock stepped back after the store had lost its data,
  -- and the smaller number is the younger one. What refuses stays, above what the process knows.
  if gen > now + 1000000 and S.state ~= CLOSED and num(ARGV[5]) == CLOSED and num(ARGV[6]) == 0 then
    S.state, S.gen, S.rev = OPEN, gen + 1, 0
    redis.call('DEL', key)
    return save()
  end
  S.gen, S.rev, S.state, S.forced = gen, rev, num(ARGV[5]), num(ARGV[6])
  S.since, S.wait, S.open, S.re, S.why = num(ARGV[7]), num(ARGV[8]), num(ARGV[9]), num(ARGV[10]), ARGV[11]
  if S.state == HALF then -- who is probing is not known any more: the next call begins the episode anew
    S.state, S.gen, S.rev = OPEN, math.max(gen + 1, now), 0
  end
  if not counts then redis.call('DEL', key) end
  save()
end

local function pair(s) -- since and length of a lease
  local a, b = string.match(s, '^(%d+) (%d+)$')
  return num(a), num(b)
end

-- The probes' slots: how many are taken, when the first is free, whose leases are over.
local function leases()
  local out, first, over = 0, 0, {}
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'p:' then
      local since, len = pair(all[i + 1])
      local rest = remains(since, len)
      if rest == 0 then
        over[#over + 1] = all[i]
      else
        out = out + 1
        if out == 1 or rest < first then first = rest end
      end
    end
  end
  return out, first, over
end

-- calls = -1: not looked at.
local function view(verdict, wait, calls, failures, slow, out)
  return {verdict, int(wait), int(S.gen), int(S.rev), S.state, S.forced, int(S.since), int(S.wait), int(S.open), int(S.re),
    int(left()), int(S.ok), int(calls), int(failures), int(slow), int(out), S.why}
end
`

// luaRead changes nothing: constructing a breaker is a read.
const luaRead = `
local out = 0
if S.state == HALF then out = leases() end
return view(0, 0, -1, 0, 0, out)
`

// luaWatch is the poll of a process that knows of an open or half-open circuit.
const luaWatch = `
adopt()
live()
local out = 0
if S.state == HALF then out = leases() end
return view(0, 0, -1, 0, 0, out)
`

// luaControl: ARGV[12] what, [13] a token: the second sending of one control must not undo another's.
const luaControl = `
adopt()
local what = ARGV[12]
if not string.find(S.ctl, ARGV[13], 1, true) then
  S.ctl = string.sub(ARGV[13] .. ' ' .. S.ctl, 1, 256)
  if what == 'force_open' then
    if S.state ~= OPEN or S.forced == 0 then
      S.forced, S.since, S.wait, S.open, S.re = 1, 0, 0, 0, 0
      if S.state == OPEN then
        S.rev, S.why = S.rev + 1, 'forced'
        save()
      else
        enter(OPEN, 'forced')
      end
    end
  elseif what == 'force_closed' then
    if S.state ~= CLOSED then close('forced') end
    if S.forced == 0 then
      S.forced, S.rev, S.why = 1, S.rev + 1, 'forced'
      save()
    end
  elseif what == 'auto' then
    if S.forced == 1 then close('automatic again') end
  else
    close('reset')
  end
  redis.call('HSET', key, 'z', S.ctl)
end
live()
return view(1, 0, -1, 0, 0, 0)
`

// luaAdmit: ARGV[12] the probe's token, [13] its lease in µs (0 = the open time, -1 = without), [14] how many may be out.
// Verdicts: 1 admitted as a probe, 2 refused, 3 closed: admitted as everybody is.
const luaAdmit = `
adopt()
if S.state == CLOSED then
  live()
  return view(3, 0, -1, 0, 0, 0)
end
if S.state == OPEN then
  if S.forced == 1 or left() > 0 then
    live()
    return view(2, left(), -1, 0, 0, 0)
  end
  enter(HALF, now < S.since and 'clock went back' or 'open time is over')
end
local lease = tonumber(ARGV[13])
if lease < 0 then
  live()
  return view(1, 0, -1, 0, 0, 0)
end
if lease == 0 then lease = S.open end
local mine = 'p:' .. ARGV[12]
local out, first, over = leases()
if redis.call('HEXISTS', key, mine) == 0 then
  if out >= tonumber(ARGV[14]) then
    live()
    return view(2, first, -1, 0, 0, out)
  end
  if #over >= 64 then redis.call('HDEL', key, unpack(over, 1, 64)) end
  redis.call('HSET', key, mine, int(now) .. ' ' .. int(lease))
  out = out + 1
end
live()
return view(1, 0, -1, 0, 0, out)
`

// luaSettle: ARGV[12] the probe's generation, [13] its token, [14] 0 neutral, 1 succeeded, 2 failed, [15] how many must
// succeed, [16] 1 = it had no lease, [17] the open time of a re-opening by growth: first, [18] factor, [19] most (µs),
// [20] jitter: -1, or the draw from [0, 1). The verdict is 1 where the result counted, 3 where it did after its lease.
const luaSettle = `
adopt()
if S.state ~= HALF or num(ARGV[12]) ~= S.gen then return view(0, 0, -1, 0, 0, 0) end
local result, mine, verdict = ARGV[14], 'p:' .. ARGV[13], 1
if ARGV[16] == '1' then
  if result == '1' and redis.call('HSETNX', key, 'd:' .. ARGV[13], 1) == 0 then return view(0, 0, -1, 0, 0, 0) end
else
  local lease = redis.call('HGET', key, mine)
  if not lease then return view(0, 0, -1, 0, 0, 0) end
  if remains(pair(lease)) == 0 then verdict = 3 end
  redis.call('HDEL', key, mine)
end
if result == '2' then
  local first, most, u = tonumber(ARGV[17]), tonumber(ARGV[19]), tonumber(ARGV[20])
  local open = first * tonumber(ARGV[18]) ^ (S.re + 1)
  if open >= most then open = most else open = math.max(first, math.floor(open + 0.5)) end
  local wait = open
  if u >= 0 and open >= 2 then
    local half = math.floor(open / 2)
    wait = open - half + math.min(math.floor(u * half), half - 1)
  end
  trip(open, wait, S.re + 1, 'probe failed')
elseif result == '1' then
  S.ok = S.ok + 1
  if S.ok >= tonumber(ARGV[15]) then
    close(S.ok == 1 and '1 probe succeeded' or int(S.ok) .. ' probes succeeded')
  else
    redis.call('HSET', key, 'k', int(S.ok))
  end
end
local out = 0
if S.state == HALF then out = leases() end
live()
return view(verdict, 0, -1, 0, 0, out)
`
