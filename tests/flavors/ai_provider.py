"""A fake AI provider that only records requests: method, path and key of each are a line on
standard output. It answers that the key is invalid, so that clients do not retry.

Argument: the address to listen on. Serves until its standard input ends.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Provider(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        print(self.command, self.path, self.headers.get("Authorization"), flush=True)
        body = json.dumps({"error": {"message": "taken down", "code": "invalid_api_key"}}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer((sys.argv[1], 9100), Provider)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
