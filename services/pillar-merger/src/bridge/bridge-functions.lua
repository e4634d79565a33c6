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
  local start = tonumber(string.match(args[2], '^(%d+)%-%d+$'))
  if now - start >= tonumber(args[3]) then
    return 0
  end
  redis.call('DEL', keys[2])
  redis.call('RPUSH', keys[2], args[5])
  redis.call('PEXPIRE', keys[2], args[4])
  return 1
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
