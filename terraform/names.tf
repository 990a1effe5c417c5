# What the webhook reads. cmd/webhook's tests compare both lists with `webhook -h`.
locals {
  secrets = [
    "PROCTOR_WEBHOOK_SECRET",
    "PROCTOR_WEBHOOK_SECRET_PREVIOUS",
    "PROCTOR_GITLAB_WEBHOOK_TOKEN",
    "PROCTOR_GITLAB_WEBHOOK_TOKEN_PREVIOUS",
    "PROCTOR_GITLAB_SIGNING_TOKEN",
    "GITHUB_APP_PRIVATE_KEY",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GITLAB_TRIGGER_TOKEN",
  ]
  settings = [
    "GITHUB_APP_ID",
    "GITHUB_API_URL",
    "GITLAB_URL",
    "PROCTOR_REPOS",
    "PROCTOR_LABEL",
    "PROCTOR_COMMANDS",
    "PROCTOR_WORKFLOW",
    "PROCTOR_BRANCHES",
    "PROCTOR_ROLES",
    "PROCTOR_BOTS",
    "PROCTOR_SELF",
  ]
}
