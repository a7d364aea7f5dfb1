// Starts fabsh lsp for files of the language fabsh. The settings are of the machine: a workspace
// cannot name a program to run.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const settings = workspace.getConfiguration("fabsh");
  const server = { command: settings.get("path"), args: [...settings.get("arguments"), "lsp"] };
  client = new LanguageClient("fabsh", "fabsh", server, {
    documentSelector: [{ scheme: "file", language: "fabsh" }],
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.star") }, // of modules that are not open
  });
  return client.start();
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
