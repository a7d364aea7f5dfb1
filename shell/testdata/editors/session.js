// What an operator does in VS Code, by messages: sees a mistake, corrects it by the code action, renames
// a variable, formats and saves. The extension of examples/editors starts the server; what VS Code and
// vscode-languageclient give it is replaced here, and its messages are sent by vscode-jsonrpc, which
// they use.
const fs = require("fs"), path = require("path"), Module = require("module");
const { spawn } = require("child_process");
const { pathToFileURL } = require("url");
const extension = path.join(process.env.EDITORS, "vscode");
const modules = Module.createRequire(path.join(extension, "extension.js"));
const rpc = modules("vscode-jsonrpc/node");

modules("vscode-languageclient/package.json"); // the extension needs it
const load = Module._load;
let server, options;
const settings = modules("./package.json").contributes.configuration.properties;
Module._load = function (name, ...rest) {
  if (name === "vscode") {
    return { workspace: {
      getConfiguration: (section) => ({ get: (key) => settings[section + "." + key].default }),
      createFileSystemWatcher: (pattern) => pattern,
    } };
  }
  if (name === "vscode-languageclient/node") {
    return { LanguageClient: class {
      constructor(_id, _name, s, o) { server = s; options = o; }
      start() { return Promise.resolve(); }
      stop() { return Promise.resolve(); }
    } };
  }
  return load.call(this, name, ...rest);
};

const seen = [];
const uri = pathToFileURL(path.resolve("links.star")).href;
let text = fs.readFileSync("links.star", "utf8");
let version = 1;

function offset(p) {
  return text.split("\n").slice(0, p.line).reduce((sum, line) => sum + line.length + 1, 0) + p.character;
}

async function main() {
  await modules("./extension.js").activate();
  if (options.documentSelector[0].language !== modules("./package.json").contributes.languages[0].id) throw new Error("another language");
  const child = spawn(server.command, server.args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((done) => child.on("exit", done));
  const c = rpc.createMessageConnection(new rpc.StreamMessageReader(child.stdout), new rpc.StreamMessageWriter(child.stdin));
  let waiting = [];
  c.onNotification("textDocument/publishDiagnostics", (p) => { if (p.version === version) { for (const w of waiting) w(p.diagnostics); waiting = []; } });
  const findings = () => new Promise((done) => waiting.push(done));
  const change = async (edits) => { // as VS Code sends them: the last one first
    const changes = [...edits].sort((a, b) => offset(b.range.start) - offset(a.range.start)).map((e) => ({ range: e.range, text: e.newText }));
    for (const e of changes) text = text.slice(0, offset(e.range.start)) + e.text + text.slice(offset(e.range.end));
    version++;
    const next = findings();
    c.sendNotification("textDocument/didChange", { textDocument: { uri, version }, contentChanges: changes });
    return next;
  };
  c.listen();
  await c.sendRequest("initialize", {
    processId: process.pid, clientInfo: { name: "Visual Studio Code" }, rootUri: pathToFileURL(process.cwd()).href, workspaceFolders: [{ uri: pathToFileURL(process.cwd()).href, name: "scripts" }],
    capabilities: { workspace: { applyEdit: true, workspaceEdit: { documentChanges: true }, didChangeWatchedFiles: { dynamicRegistration: true } }, textDocument: { publishDiagnostics: { versionSupport: true, codeDescriptionSupport: true }, codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix"] } } }, rename: { prepareSupport: true } } },
  });
  c.sendNotification("initialized", {});
  let found = findings();
  c.sendNotification("textDocument/didOpen", { textDocument: { uri, languageId: "fabsh", version, text } });
  found = await found;
  for (const d of found) seen.push(["finding", d.range.start.line, d.range.start.character, d.source, d.message].join(" "));
  const actions = await c.sendRequest("textDocument/codeAction", { textDocument: { uri }, range: found[0].range, context: { diagnostics: found } });
  for (const a of actions) seen.push("action " + a.title);
  found = await change(actions[0].edit.changes[uri]);
  seen.push("left " + found.length);
  const position = { line: 2, character: 13 };
  await c.sendRequest("textDocument/prepareRename", { textDocument: { uri }, position });
  const renamed = await c.sendRequest("textDocument/rename", { textDocument: { uri }, position, newName: "port" });
  await change(renamed.changes[uri]);
  await change(await c.sendRequest("textDocument/formatting", { textDocument: { uri }, options: { tabSize: 4, insertSpaces: true } }));
  fs.writeFileSync("links.star", text);
  c.sendNotification("textDocument/didSave", { textDocument: { uri } });
  await c.sendRequest("shutdown");
  c.sendNotification("exit");
  seen.push("exit " + await ended);
  fs.writeFileSync("seen", seen.join("\n") + "\n");
  process.exit(0);
}

main().catch((err) => { console.error(err); process.exit(1); });
