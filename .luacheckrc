-- How luacheck reads the scripts: a verb's file runs as one chunk behind the key names of keys.py,
-- the prelude and the shared functions (the files that begin with `_`).
--
-- The rule: what these give to the other files is read from them, so there is no list here that
-- could drift. A global that nobody defined is an error.

local lua = "src/fairlane/lua/"

local function text_of(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

-- The first string of each row of the keys' table: the only strings there in capitals.
local function key_names()
  local names = {}
  for name in text_of("src/fairlane/keys.py"):gmatch('"(%u[%u_]+)"') do
    names[#names + 1] = name
  end
  return names
end

-- The prelude, and the files that scripts.py lists as shared.
local function shared_files()
  local names = { "_prelude" }
  local list = text_of("src/fairlane/scripts.py"):match("SHARED[^\n]*= (%b())")
  for name in list:gmatch('"([%w_]+)"') do
    names[#names + 1] = name
  end
  return names
end

-- The top-level locals of the shared files; a local that is indented is its file's own.
local function shared_names()
  local names = {}
  for _, file in ipairs(shared_files()) do
    for line in text_of(lua .. file .. ".lua"):gmatch("[^\n]+") do
      local list = line:match("^local function ([%w_]+)") or line:match("^local ([%w_, ]+)")
      for name in (list or ""):gmatch("[%a_][%w_]*") do
        names[#names + 1] = name
      end
    end
  end
  return names
end

std = "lua51"
max_line_length = 100
read_globals = { "redis", "server", "KEYS", "ARGV", "C", "DIGEST", "cjson", "cmsgpack", "struct", "bit" }

local given, unused = key_names(), {}
for _, name in ipairs(shared_names()) do
  given[#given + 1] = name
  unused[#unused + 1] = "[23][1-4]1/" .. name
end

files[lua .. "*.lua"] = { read_globals = given }
-- What a shared file defines is for the others to use.
files[lua .. "_*.lua"] = { ignore = unused }
