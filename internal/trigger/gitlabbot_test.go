package trigger

import "testing"

// INV-40: an account behind a token is a bot by whatever door it comes; who has a name like one is not.
func TestGitLabsTokenBotsAreToldInADispatchToo(t *testing.T) {
	t.Parallel()
	for login, bot := range map[string]bool{
		"project_4200_bot_1a2b": true, "group_7_bot": true, "project_7_bot3": true, "proctor[bot]": true,
		"ann": false, "project_x_bottle": false, "my_project_4_bot": false,
	} {
		a, err := parseActor("7:" + login)
		if err != nil || a.Bot != bot || login != "proctor[bot]" && GitLabBot(login) != bot || login != "proctor[bot]" && (glUser{Username: login}).actor().Bot != bot {
			t.Errorf("%s: %+v, %v", login, a, err)
		}
	}
}
