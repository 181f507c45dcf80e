"""A screenshot for docs/commands.md, of JupyterLab with the output of two ranks: figures/lab.png.

Called by `make screenshots`. Debian's chromium must be there.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 1300, 800
UP_TO_THE_FIRST_PX = """async () => {
    const notebook = jupyterapp.shell.currentWidget.content
    await jupyterapp.shell.currentWidget.sessionContext.ready
    const isFirst = cell => cell.model.type == 'code' && cell.model.sharedModel.getSource().includes('%%px')
    const last = notebook.widgets.findIndex(isFirst)
    for (let index = 0; index <= last; index++) {
        notebook.activeCellIndex = index
        await jupyterapp.commands.execute('notebook:run-cell')
    }
    await notebook.scrollToItem(last, 'center')
}"""


def main():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        with lab() as (address, token):
            page.goto(f"{address}/lab/workspaces/course?token={token}")
            page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
            page.evaluate(UP_TO_THE_FIRST_PX)
            page.wait_for_timeout(1000)
            page.screenshot(path=ROOT / "figures" / "lab.png")
            print("figures/lab.png")
            page.goto("about:blank")
        browser.close()


@contextmanager
def lab():
    """The address of a JupyterLab on a copy of the notebooks, and its token."""
    token = secrets.token_hex()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        for name in ("notebooks", "figures", "docs"):
            shutil.copytree(ROOT / name, Path(folder, name))
        settings = ROOT / "tools" / "lab"
        of_workspaces = f"{folder}/build/lab"
        layout = [settings / "beside_the_contents.json", f"--LabWorkspaceImportApp.workspaces_dir={of_workspaces}"]
        subprocess.run([sys.executable, "-m", "jupyterlab", "workspaces", "import", *layout], check=True)
        options = [f"--notebook-dir={folder}", f"--LabApp.app_settings_dir={settings}", f"--ServerApp.port={port}"]
        options += ["--ServerApp.port_retries=0", "--LabApp.expose_app_in_browser=True"]
        options += [f"--LabApp.workspaces_dir={of_workspaces}"]
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--log-level=ERROR", *options]
        server = subprocess.Popen(command, env={**os.environ, "JUPYTER_TOKEN": token})
        try:
            wait_for(address, server)
            yield address, token
        finally:
            server.terminate()
            server.wait()


def wait_for(address, server, seconds=60):
    for _ in range(seconds):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{address}/api")
            return
        except OSError:
            time.sleep(1)
    sys.exit("JupyterLab did not start")


if __name__ == "__main__":
    main()
