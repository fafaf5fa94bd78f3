// Errors that nearly every request can get. Each operation shows them once, folded.
const SHARED = ["401", "403", "408", "413", "415", "429", "500", "503"];

// Folds the shared errors of an operation below its own responses.
function FoldErrors() {
  return {
    wrapComponents: {
      responses: (Responses, { React }) => (props) => {
        const shared = SHARED.filter((status) => props.responses.has(status));
        const own = props.responses.filterNot((_, status) => shared.includes(status));
        const line = (status) =>
          React.createElement(
            "li",
            { key: status },
            React.createElement("code", null, status),
            ` ${props.responses.getIn([status, "description"], "")}`,
          );
        return React.createElement(
          React.Fragment,
          null,
          React.createElement(Responses, { ...props, responses: own }),
          React.createElement(
            "details",
            { style: { padding: "10px 20px" } },
            React.createElement(
              "summary",
              { style: { cursor: "pointer" } },
              `Errors of every request: ${shared.join(", ")}`,
            ),
            React.createElement("p", null, "The body is {\"detail\": \"…\"}, in words for people."),
            React.createElement("ul", null, shared.map(line)),
          ),
        );
      },
    },
  };
}

// Over plain HTTP, a session is in a cookie and in the storage of the console: see part.ts there.
function addSession(request) {
  try {
    const part = localStorage.getItem("session-part");
    if (part && new URL(request.url, location.href).origin === location.origin) {
      request.headers["Wharf-Session"] = part;
    }
  } catch {
    // A browser that blocks the storage has a key instead.
  }
  return request;
}

// The key given to "Authorize" stays in this page's memory: it is not kept across reloads.
window.addEventListener("load", () => {
  SwaggerUIBundle({
    url: "../openapi.json",
    dom_id: "#explorer",
    deepLinking: true,
    persistAuthorization: false,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    validatorUrl: null,
    plugins: [FoldErrors],
    requestInterceptor: addSession,
  });
});
