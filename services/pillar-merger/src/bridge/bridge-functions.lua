#!lua name=colonnade_bridge

-- The bridge between Salt masters and pillar-merger. Functions and not EVAL, so that a master needs no right to run
-- Lua of its own: Redis checks the rights of the caller for every command called in here.

-- The most unanswered requests of one master, whatever the master itself says.
local MAX_QUEUE = 5000
local ALIVE_KEY = 'colonnade:bridge:alive'

-- KEYS: request stream. ARGV: longest queue the master accepts, request. The alive key is named here and not a
-- parameter: a key of a function call must be writable for its caller, and a master may only read this one.
-- Returns the id of the new entry. No MAXLEN: it would discard requests that nobody has answered yet.
local function request(keys, args)
  if redis.call('EXISTS', ALIVE_KEY) == 0 then
    return redis.error_reply('NO_MERGER no live merger')
  end
  local max_queue = math.min(tonumber(args[1]) or 0, MAX_QUEUE)
  if redis.call('XLEN', keys[1]) >= max_queue then
    return redis.error_reply('OVERLOADED the request stream is full')
  end
  return redis.call('XADD', keys[1], '*', 'data', args[2])
end

-- KEYS: request stream, reply key. ARGV: group, entry id, ttl_ms, keep_ms, reply.
-- Returns 1 when the reply was stored, 0 when it is late or the entry was answered already. Whoever acknowledges the
-- entry answers it, so at most one reply is ever stored. An entry's time begins with its id, and ends by this clock.
local function reply(keys, args)
  if redis.call('XACK', keys[1], args[1], args[2]) == 0 then
    return 0
  end
  redis.call('XDEL', keys[1], args[2])
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  -- An id may lie in the future, when a master chose it or the clock was set back.
  local start = math.min(tonumber(string.match(args[2], '^(%d+)%-%d+$')), now)
  if now - start >= tonumber(args[3]) then
    return 0
  end
  redis.call('DEL', keys[2])
  redis.call('RPUSH', keys[2], args[5])
  redis.call('PEXPIRE', keys[2], args[4])
  return 1
end

-- KEYS: request stream. ARGV: group, most entries, most bytes, how far an id may be ahead of the clock in ms.
-- A master may also write to its stream without the function above, since that runs with the master's rights. What it
-- can do wrong that way is put right here. Returns what was found and how many entries were dropped:
--   foreign_type: the key is no stream, and is made one. exhausted: ids are so far ahead that none can follow, or that
--   no time counts: made anew. too_large: over its memory: made anew. too_long: the oldest entries are dropped.
-- Nothing in here loads an entry: that is what a flood would want (XINFO STREAM does).
local function guard(keys, args)
  local key, found, dropped = keys[1], 'none', 0
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'stream' and kind ~= 'none' then
    redis.call('DEL', key)
    kind, found, dropped = 'none', 'foreign_type', 1
  end
  if kind == 'stream' then
    local time = redis.call('TIME')
    local latest = tonumber(time[1]) * 1000 + tonumber(args[4])
    for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do
      for i = 1, #group, 2 do
        if group[i] == 'last-delivered-id' and tonumber(string.match(group[i + 1], '^%d+')) > latest then
          found = 'exhausted'
        end
      end
    end
    local length = redis.call('XLEN', key)
    if found == 'none' and length > tonumber(args[2]) then
      dropped = redis.call('XTRIM', key, 'MAXLEN', '=', args[2])
      found, length = 'too_long', length - dropped
    end
    if found ~= 'exhausted' and length > 0 and redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0') > tonumber(args[3]) then
      found = 'too_large'
    end
    if found == 'exhausted' or found == 'too_large' then
      dropped = dropped + length
      redis.call('DEL', key)
    end
  end
  local made = redis.pcall('XGROUP', 'CREATE', key, args[1], '0', 'MKSTREAM')
  if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then
    return made
  end
  return { found, dropped }
end

-- KEYS: request stream. ARGV: group, consumer, least idle time in ms.
-- Removes a consumer that has nothing pending; one with pending entries would take them with it.
local function forget(keys, args)
  if redis.call('EXISTS', keys[1]) == 0 then
    return 0
  end
  for _, fields in ipairs(redis.call('XINFO', 'CONSUMERS', keys[1], args[1])) do
    local consumer = {}
    for i = 1, #fields, 2 do
      consumer[fields[i]] = fields[i + 1]
    end
    if consumer.name == args[2] and consumer.pending == 0 and consumer.idle >= tonumber(args[3]) then
      redis.call('XGROUP', 'DELCONSUMER', keys[1], args[1], args[2])
      return 1
    end
  end
  return 0
end

-- no-cluster: the keys of one call lie in different slots. allow-oom: an answer frees more than it takes.
redis.register_function{ function_name = 'colonnade_bridge_request', callback = request, flags = { 'no-cluster' } }
redis.register_function{ function_name = 'colonnade_bridge_reply', callback = reply, flags = { 'no-cluster', 'allow-oom' } }
redis.register_function{ function_name = 'colonnade_bridge_forget', callback = forget, flags = { 'no-cluster', 'allow-oom' } }
redis.register_function{ function_name = 'colonnade_bridge_guard', callback = guard, flags = { 'no-cluster', 'allow-oom' } }
