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
  });
});
