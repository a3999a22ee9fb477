package redislimit

import "github.com/fairlead/fairlead/internal/redisscript"

// bucket reads the state: a string of digits, the TAT (GCRA's theoretical arrival time, the instant at which the bucket will be
// full) in units since 2020. What a missing key means is a full bucket.
//
// After an Update the string goes on with ":interval:full:longest", in units, so that every process knows which policy the TAT was
// counted with, and the balance in tokens is carried over exactly once, whoever hears of the new parameters first. Before
// that, digits alone are taken to mean the parameters that a process was made with. longest is the largest full that had a part in
// it: so long the key lives, since a process for which the bucket fills later than for its writer must not find a full one.
//
// A TAT further ahead than a full bucket comes from a clock that stepped back, or from a process with a larger bucket under the
// same name. The first heals: it is cut to an empty bucket, once the step is certain (this client has seen a later instant,
// or the policy of the TAT is known), or this client may take it for one, which it may once an hour, of a TAT that has not moved
// for a second, or two intervals if they are longer, since it saw it first (ARGV[8], ARGV[9]): a fleet that is deployed with a
// smaller Burst must not refill the larger bucket at each refusal of the smaller one, nor once for each process that begins.
const bucket = `
local interval, full, grain = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local function grains(instant) return math.floor(math.max(0, instant - 1577836800000000) * 16 / grain) end
local here = grains(now)
local tat, written, suffix, healed, longest = here, false, '', 0, 0
local value = redis.call('GET', key)
local function tag(other)
  longest = math.max(full, math.ceil(other / grain))
  suffix = ':' .. int(interval * grain) .. ':' .. int(full * grain) .. ':' .. int(longest * grain)
end
if value then
  local t, i, f, l = string.match(value, '^(%d+):(%d+):(%d+):(%d+)$')
  local known = t
  if not t then t, i, f, l = string.match(value, '^%d+$'), ARGV[5], ARGV[6], ARGV[6] end
  i, f = tonumber(i), tonumber(f)
  if not t or i < 1 or f < i then return redis.error_reply('ERR fairlead: the key of this limiter holds something else') end
  i, f = i / grain, f / grain
  tat = math.max(here, math.ceil(tonumber(t) / grain))
  local excess = tat - here - f
  if excess > 0 then
    local since = tonumber(ARGV[9])
    if known or now < tonumber(ARGV[7]) or excess * grain > 504576000000000 then
      tat, written, healed = here + f, true, 1
    elseif tat == tonumber(ARGV[8]) and now - since >= math.max(1000000, math.floor(interval * grain / 8)) then
      tat, written, healed = math.max(here, grains(since) + f), true, 1
    end
  end
  if i ~= interval or f ~= full then
    local held = math.max(0, f - (tat - here))
    local whole = math.floor(held / i)
    held = whole * interval + math.floor((held - whole * i) * interval / i)
    tat, written = here + full - math.min(full, held), true
    known = true
  end
  if known then tag(tonumber(l)) end
elseif ARGV[5] ~= int(interval * grain) or ARGV[6] ~= int(full * grain) then
  tag(tonumber(ARGV[6]))
end
`

// take serves a batch: first what comes back, then one run of equal requests after the other, then tokens ahead. A run is
// (n, how many, the longest wait in grains that they accept). A request that will wait blocks the way for all behind it; one
// that will not, and is refused, blocks nobody. A batch that takes nothing writes nothing.
var take = redisscript.NewScript(bucket + `
local idle, refund, ahead = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
if refund > 0 and tat > here then
  tat, written = math.max(here, tat - refund * interval), true
end
local free = here + full - tat
local out, blocked = {}, 0
for j = 13, #ARGV, 3 do
  local n, count, most = ARGV[j] * interval, tonumber(ARGV[j + 1]), tonumber(ARGV[j + 2])
  local k = 0
  if blocked == 0 then
    k = math.max(0, math.min(count, math.floor(free / n)))
    free = free - k * n
    if k < count and n - free <= most then blocked = (j - 10) / 3 end
  end
  out[#out + 1] = k
end
local extra = 0
if blocked == 0 then
  extra = math.max(0, math.min(ahead, math.floor(free / interval)))
  free = free - extra * interval
end
if here + full - free ~= tat then tat, written = here + full - free, true end
if written then redis.call('SET', key, int(tat * grain) .. suffix) end
if idle >= 0 and (written or (value and redis.call('PTTL', key) == -1)) then
  expire(math.max(tat - here, longest) * grain / 16000 + 10 + idle)
end
return {now, tat - here, healed, extra, blocked, unpack(out)}
`)

// look is the same reading without a writing.
var look = redisscript.NewScript(bucket + `
return {now, tat - here}
`)

// head is how many numbers stand in a batch's reply before the runs' own.
const head = 5

// maxRuns is how many runs a batch holds: Lua's unpack takes 8,000 values at most, and the server serves nobody else meanwhile
// (measured: 1.2 µs for each run, 1.7 for a quota).
const maxRuns = 4000

// spend is take for a quota: a hash of what is spent, and a slot per client that remembers its last call, so that a call that
// is sent twice counts once. seq counts a client's calls, acked is the last whose reply it got.
//
// A call between them has been given up: nobody uses what it took. If the slot shows that it was executed, it is undone here,
// and if it is executed later, its seq is too old: it changes nothing. So a lost reply costs no token.
var spend = redisscript.NewScript(`
local limit, id, seq, acked = tonumber(ARGV[2]), 'c:' .. ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local refund, ahead = tonumber(ARGV[6]), tonumber(ARGV[7])
local raw = redis.call('HGET', key, 'spent')
if not raw and redis.call('EXISTS', key) == 1 or raw and not string.match(raw, '^%d+$') then
  return redis.error_reply('ERR fairlead: the key of this quota holds something else')
end
local spent = tonumber(raw or '0')
local before = spent
local slot = redis.call('HGET', key, id)
if slot then
  local s, delta, reply = string.match(slot, '^(%d+) (%-?%d+) %d+ (.*)$')
  s = tonumber(s)
  if s == seq then
    local again = {}
    for x in string.gmatch(reply, '%d+') do again[#again + 1] = tonumber(x) end
    return again
  end
  if s > seq then return {now, spent, 0, 0, 0} end
  if s > acked then spent = math.max(0, spent - tonumber(delta)) end
end
local start = spent
spent = math.max(0, spent - refund)
local out = {}
for j = 8, #ARGV, 3 do
  local n, count = tonumber(ARGV[j]), tonumber(ARGV[j + 1])
  local k = math.max(0, math.min(count, math.floor((limit - spent) / n)))
  spent = spent + k * n
  out[#out + 1] = k
end
local extra = math.max(0, math.min(ahead, limit - spent))
spent = spent + extra
local answer = {now, spent, 0, extra, 0, unpack(out)}
if spent ~= before or start ~= before or acked < seq - 1 then
  local text = {}
  for j, x in ipairs(answer) do text[j] = int(x) end
  redis.call('HSET', key, 'spent', int(spent), id, int(seq) .. ' ' .. int(spent - start) .. ' ' .. int(now / 1000000) .. ' ' .. table.concat(text, ' '))
  redis.call('PERSIST', key)
  if not slot and redis.call('HLEN', key) > 128 then
    local all = redis.call('HGETALL', key)
    for j = 1, #all, 2 do
      local at = string.match(all[j + 1], '^%d+ %-?%d+ (%d+) ')
      if at and now / 1000000 - at > 3600 then redis.call('HDEL', key, all[j]) end
    end
  end
end
return answer
`)

// left is a quota's level.
var left = redisscript.NewScript(`
local raw = redis.call('HGET', key, 'spent')
if not raw and redis.call('EXISTS', key) == 1 or raw and not string.match(raw, '^%d+$') then
  return redis.error_reply('ERR fairlead: the key of this quota holds something else')
end
return {now, tonumber(raw or '0')}
`)
