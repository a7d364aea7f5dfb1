-- What an operator does in Neovim: sees a mistake, corrects it by the code action, completes, renames a
-- variable, formats and saves. The configuration of examples/editors starts the server.
local out = io.open("seen", "w")
local function seen(...) out:write(table.concat({...}, " "), "\n") out:flush() end
vim.cmd("luafile " .. os.getenv("EDITORS") .. "/neovim.lua")
vim.cmd("edit links.star")
local wait = 60000
local function clients() return vim.lsp.buf_get_clients(0) end
vim.wait(wait, function() return next(clients()) ~= nil end, 10)
local client = next(clients())
local encoding = clients()[client].offset_encoding
local function findings(n, line)
  vim.wait(wait, function() local d = vim.diagnostic.get(0) return #d == n and (n == 0 or d[1].lnum == line) end, 10)
  return vim.diagnostic.get(0)
end
local function request(method, params)
  local answer = vim.lsp.buf_request_sync(0, method, params, wait)[client]
  if answer.err then seen("error", method, answer.err.message) end
  return answer.result
end
local function here(line, col)
  vim.api.nvim_win_set_cursor(0, {line, col})
  return vim.lsp.util.make_position_params(0, encoding)
end

local found = findings(1, 3)
for _, d in ipairs(found) do seen("finding", d.lnum, d.col, d.source, d.message) end
local d = found[1]
local range = {start = {line = d.lnum, character = d.col}, ["end"] = {line = d.end_lnum, character = d.end_col}}
local actions = request("textDocument/codeAction", {
  textDocument = vim.lsp.util.make_text_document_params(0), range = range,
  context = {diagnostics = {{range = range, message = d.message, source = d.source, severity = d.severity}}},
})
for _, a in ipairs(actions) do seen("action", a.title) end
vim.lsp.util.apply_workspace_edit(actions[1].edit, encoding)
findings(0)

vim.api.nvim_buf_set_lines(0, 4, 5, true, {"                print(prt.)"})
findings(1, 4)
local words = {}
for _, item in ipairs(request("textDocument/completion", here(5, 26)).items) do
  if item.label:match("^na") then table.insert(words, item.textEdit.newText) end
end
seen("completion", unpack(words))
vim.api.nvim_buf_set_lines(0, 4, 5, true, {"                print( prt.name )"})
findings(0)

local rename = here(3, 12)
rename.newName = "port"
vim.lsp.util.apply_workspace_edit(request("textDocument/rename", rename), encoding)
findings(0)
if vim.lsp.buf.format then vim.lsp.buf.format({timeout_ms = wait}) else vim.lsp.buf.formatting_sync(nil, wait) end
vim.cmd("write!")
vim.lsp.stop_client(client)
vim.wait(wait, function() return vim.lsp.client_is_stopped(client) end, 10)
out:close()
vim.cmd("qall!")
