-- How luacheck reads the scripts: each file runs behind _prelude.lua, as one chunk.
--
-- The rule: what the prelude gives to the other files is read from the prelude itself, so there is
-- no list here that could drift. A global that nobody defined is an error.

local folder = "src/fairlane/lua/"

-- The names of the prelude's top-level locals; a local that is indented is the prelude's own.
local function shared_names()
  local names = {}
  local prelude = io.open(folder .. "_prelude.lua")
  if not prelude then
    return names
  end
  for line in prelude:lines() do
    local name = line:match("^local%s+function%s+([%a_][%w_]*)")
    if name then
      names[#names + 1] = name
    else
      for each in (line:match("^local%s+([%a_][%w_%s,]*)") or ""):gmatch("[%a_][%w_]*") do
        names[#names + 1] = each
      end
    end
  end
  prelude:close()
  return names
end

std = "lua51"
max_line_length = 100
read_globals = { "redis", "server", "KEYS", "ARGV", "cjson", "cmsgpack", "struct", "bit" }

local shared = shared_names()
local unused_in_prelude = {}
for index, name in ipairs(shared) do
  unused_in_prelude[index] = "211/" .. name
end

files[folder .. "*.lua"] = { read_globals = shared }
files[folder .. "_prelude.lua"] = { ignore = unused_in_prelude }
