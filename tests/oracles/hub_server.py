"""A small server on 127.0.0.1 that speaks those routes of the Hugging Face Hub which a download uses."""

import hashlib
import http.server
import json
import threading
import urllib.parse


class Hub:
    """Repositories by id: their commits by hash, and the branches and tags that name them."""

    def __init__(self):
        self.commits, self.revisions, self.requests = {}, {}, []
        self.gated, self.private = set(), set()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.cdn = self.url.replace("127.0.0.1", "localhost")
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def add(self, model_id, files, revision="main"):
        commit = hashlib.sha1(f"{model_id} {revision}".encode()).hexdigest()
        self.commits[model_id, commit] = files
        self.revisions[model_id, revision] = self.revisions[model_id, commit] = commit
        return commit

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def requests_of_each_call(self):
        """Returns what was asked for after each mark: method and route."""
        calls = []
        for request in self.requests:
            if request.endswith("/mark"):
                calls.append([])
            elif "/api/models" in request or "/resolve/" in request or "/cdn/" in request:
                calls[-1].append(request)
        self.requests.clear()
        return calls


def _handler(hub):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            hub.requests.append(f"{self.command} {self.path}")
            route = urllib.parse.unquote(self.path.split("?")[0])
            if route.startswith("/api/models/"):
                self.api(route.removeprefix("/api/models/"))
            elif "/resolve/" in route:
                model_id, rest = route[1:].split("/resolve/")
                self.resolve(model_id, *rest.split("/", 1))
            elif route.startswith("/cdn/"):
                _, _, *model_id, commit, name = route.split("/")
                self.answer(hub.commits["/".join(model_id), commit][name])
            else:
                self.answer(b"", 200 if route == "/mark" else 404)

        do_HEAD = do_GET

        def log_message(self, *arguments):
            pass

        def api(self, route):
            for what in ("/revision/", "/tree/"):
                if what in route:
                    model_id, revision = route.split(what)
                    break
            commit = self.commit(model_id, revision)
            if commit is None:
                return
            files = hub.commits[model_id, commit]
            if what == "/revision/":
                names = [{"rfilename": name} for name in files]
                content = {"id": model_id, "sha": commit, "siblings": names}
            else:
                content = [
                    {"type": "file", "path": name, "size": len(data), "oid": _etag(data)}
                    for name, data in files.items()
                ]
            self.answer(json.dumps(content).encode(), kind="application/json")

        def commit(self, model_id, revision):
            known = any(model_id == found for found, _ in hub.revisions)
            allowed = self.headers.get("Authorization") == "Bearer secret"
            if not known or model_id in hub.private and not allowed:
                # The real Hub does not tell the two apart either.
                self.answer(b"{}", 401, {"X-Error-Code": "RepoNotFound"})
            elif (model_id, revision) not in hub.revisions:
                self.answer(b"{}", 404, {"X-Error-Code": "RevisionNotFound"})
            else:
                return hub.revisions[model_id, revision]

        def resolve(self, model_id, revision, name):
            commit = self.commit(model_id, revision)
            if commit is None:
                return
            data = hub.commits[model_id, commit].get(name)
            headers = {"X-Repo-Commit": commit}
            if model_id in hub.gated:
                self.answer(b"{}", 403, {"X-Error-Code": "GatedRepo"})
            elif data is None:
                self.answer(b"{}", 404, {**headers, "X-Error-Code": "EntryNotFound"})
            elif name.endswith(".safetensors"):  # large files lie with another host
                headers |= {
                    "X-Linked-Size": str(len(data)),
                    "X-Linked-Etag": f'"{hashlib.sha256(data).hexdigest()}"',
                    "Location": f"{hub.cdn}/cdn/{model_id}/{commit}/{name}",
                }
                self.answer(b"", 302, headers)
            else:
                self.answer(data, 200, {**headers, "ETag": f'"{_etag(data)}"'})

        def answer(self, data, status=200, headers=None, kind="application/octet-stream"):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

    return Handler


def _etag(data):
    return hashlib.sha1(data).hexdigest()
