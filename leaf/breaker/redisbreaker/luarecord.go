package redisbreaker

// luaRecord counts a batch of results and opens the circuit at a threshold, looked at after each result as the local breaker
// does: the runs of a batch are walked in their order, and only where nothing can come of it in one step.
//
// ARGV[12] the batch's generation, [13] the reporter, [14] the batch's number (one that is not above the last is a duplicate),
// [15] the window's name, [16] a tenth of its time in µs (0 = of any age), [17] its calls (0 = a time window), [18] MinCalls,
// [19] FailureRate (-1 = off), [20] FailureCount, [21] Consecutive, [22] SlowRate (each 0 = off), [23] MinReporters, [24] the open
// time before and [25] after jitter (µs), [26] the runs: "kind count kind count …", kind = 1 failed + 2 slow.
// The verdict is 1 where the batch opened the circuit, 2 where it was counted, 0 where it was not.
const luaRecord = `
adopt()
if S.state ~= CLOSED or num(ARGV[12]) ~= S.gen then
  live()
  return view(0, 0, -1, 0, 0, 0)
end
local me = 'r:' .. ARGV[13]
local function reporter(s)
  local seq, failed, heard = string.match(s or '', '^(%d+) (%d+) (%d+)$')
  return num(seq), num(failed), num(heard)
end
local seq, failed = reporter(redis.call('HGET', key, me))
local fresh = num(ARGV[14]) > seq
local sig, width, size = ARGV[15], tonumber(ARGV[16]), tonumber(ARGV[17])
local least, rate, most, inrow, slowRate = tonumber(ARGV[18]), tonumber(ARGV[19]), tonumber(ARGV[20]), tonumber(ARGV[21]), tonumber(ARGV[22])
local needed = tonumber(ARGV[23])

-- What the window holds now.
local slot = width > 0 and math.floor(now / width) or 0
local function alive(n) return n <= slot and n > slot - 10 end
local calls, fails, slows = 0, 0, 0
local mine = {0, 0, 0}       -- a time window's newest bucket
local all, head = '', 1      -- a count window's results, and the first that it still holds
local marks = {}
if size == 0 then
  local names = {}
  for i = 0, 9 do names[i + 1] = 'b' .. i .. sig end
  for _, s in ipairs(redis.call('HMGET', key, unpack(names))) do
    local n, c, fl, sl = string.match(s or '', '^(%d+) (%d+) (%d+) (%d+)$')
    n, c, fl, sl = num(n), num(c), num(fl), num(sl)
    if c > 0 and alive(n) then
      calls, fails, slows = calls + c, fails + fl, slows + sl
      if n == slot then mine = {c, fl, sl} end
    end
  end
else
  all = redis.call('HGET', key, 'ring' .. sig) or ''
  if width > 0 then
    local kept = 0
    for n, c in string.gmatch(redis.call('HGET', key, 'mark' .. sig) or '', '(%d+) (%d+)') do
      n, c = num(n), num(c)
      if alive(n) then
        marks[#marks + 1] = {n, c}
        kept = kept + c
      end
    end
    all = kept == 0 and '' or string.sub(all, -kept)
  end
  all = string.sub(all, -size)
  calls = #all
  fails = select(2, string.gsub(all, '[13]', ''))
  slows = select(2, string.gsub(all, '[23]', ''))
end
if not fresh then
  live()
  return view(0, 0, calls, fails, slows, 0)
end

local runs, sum = {}, 0
for kind, c in string.gmatch(ARGV[26], '(%d) (%d+)') do
  runs[#runs + 1] = {tonumber(kind), tonumber(c)}
  sum = sum + tonumber(c)
  if kind ~= '0' then failed = now end
end
if size > 0 then
  local new = {all}
  for i, r in ipairs(runs) do new[i + 1] = string.rep(tostring(r[1]), r[2]) end
  all = table.concat(new)
end
redis.call('HSET', key, me, ARGV[14] .. ' ' .. int(failed) .. ' ' .. int(now))

local function add(kind, c)
  local bad, slow = kind % 2, kind >= 2 and 1 or 0
  calls, fails, slows = calls + c, fails + bad * c, slows + slow * c
  mine = {mine[1] + c, mine[2] + bad * c, mine[3] + slow * c}
  S.row = bad == 1 and S.row + c or 0
  if size == 0 then return end
  for i = head, head + calls - size - 1 do
    local old = string.byte(all, i) - 48
    calls, head = calls - 1, i + 1
    if old % 2 == 1 then fails = fails - 1 end
    if old >= 2 then slows = slows - 1 end
  end
end

local function reached()
  S.row = math.min(S.row, calls) -- what has left the window is no longer part of the row
  local enough = calls >= least
  if enough and rate > 0 and fails / calls >= rate then
    return 'failure rate ' .. int(fails) .. '/' .. int(calls)
  elseif most > 0 and fails >= most then
    return (fails == 1 and '1 failure' or int(fails) .. ' failures') .. ' in the window'
  elseif not enough and inrow > 0 and S.row >= inrow then
    return (S.row == 1 and '1 failure' or int(S.row) .. ' failures') .. ' in a row'
  elseif enough and slowRate > 0 and slows / calls >= slowRate then
    return 'slow rate ' .. int(slows) .. '/' .. int(calls)
  end
end

-- How long a reporter's failure counts: as long as a result in the window.
local function sick(at) return at > 0 and at <= now and (width == 0 or now - at < 10 * width) end
local reporters
local function enoughReporters()
  if needed <= 1 then return true end
  if not reporters then
    reporters = 0
    local every = redis.call('HGETALL', key)
    for i = 1, #every, 2 do
      if string.sub(every[i], 1, 2) == 'r:' then
        local _, at = reporter(every[i + 1])
        if sick(at) then reporters = reporters + 1 end
      end
    end
  end
  return reporters >= needed
end

local why
for _, r in ipairs(runs) do
  local kind, c = r[1], r[2]
  local step = 1
  while c > 0 and not why do
    add(kind, step)
    c = c - step
    if S.forced == 0 then
      local reason = reached()
      if reason and enoughReporters() then why = reason end
    end
    -- A further success lowers rates that did not trip, unless it is the one that completes MinCalls.
    if kind == 0 and c > 0 then step = calls < least and math.min(c, least - calls) or c end
  end
  if why then break end
end

if why then
  trip(tonumber(ARGV[24]), tonumber(ARGV[25]), 0, why)
  live()
  return view(1, 0, -1, 0, 0, 0)
end

if size == 0 then
  redis.call('HSET', key, 'x', int(S.row), 'b' .. slot % 10 .. sig,
    int(slot) .. ' ' .. int(mine[1]) .. ' ' .. int(mine[2]) .. ' ' .. int(mine[3]))
else
  redis.call('HSET', key, 'x', int(S.row), 'ring' .. sig, string.sub(all, head))
  if width > 0 then
    if #marks > 0 and marks[#marks][1] == slot then
      marks[#marks][2] = marks[#marks][2] + sum
    else
      marks[#marks + 1] = {slot, sum}
    end
    local text = {}
    for i, m in ipairs(marks) do text[i] = int(m[1]) .. ' ' .. int(m[2]) end
    redis.call('HSET', key, 'mark' .. sig, table.concat(text, ' '))
  end
end

-- Reporters come and go with processes, and windows of other sizes with their versions. A reporter that was not heard for a minute
-- sends no duplicate any more; what has left its window says nothing.
local cleared = num(redis.call('HGET', key, 'c'))
if cleared > now or now - cleared > 60000000 then
  local every, gone = redis.call('HGETALL', key), {}
  local function past(n, tenth)
    n, tenth = num(n), num(tenth)
    local at = tenth > 0 and math.floor(now / tenth) or n
    return n > at or n <= at - 10
  end
  for i = 1, #every, 2 do
    local name, value = every[i], every[i + 1]
    local bucket, mark = string.match(name, '^b%d@0/(%d+)$'), string.match(name, '^mark@%d+/(%d+)$')
    if string.sub(name, 1, 2) == 'r:' then
      local _, at, heard = reporter(value)
      if not sick(at) and now - heard > 60000000 then gone[#gone + 1] = name end
    elseif bucket and past(string.match(value, '^%d+'), bucket) then
      gone[#gone + 1] = name
    elseif mark and past(string.match(value, '(%d+) %d+$'), mark) then
      gone[#gone + 1], gone[#gone + 2] = name, 'ring' .. string.sub(name, 5)
    end
  end
  for i = 1, #gone, 1000 do redis.call('HDEL', key, unpack(gone, i, math.min(i + 999, #gone))) end
  redis.call('HSET', key, 'c', int(now))
end
live()
return view(2, 0, calls, fails, slows, 0)
`
