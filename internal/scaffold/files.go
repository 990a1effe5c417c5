package scaffold

import (
	"github.com/proctor-ci/proctor/templates"
)

// Forge is which CI the files are for.
type Forge string

// Forges.
const (
	GitHub Forge = "github"
	GitLab Forge = "gitlab"
)

// Files are those of a door: the configuration at its place, and what starts the job. configAt is where a configuration lies
// already, "" for nowhere: two at once are an error of the loader.
func Files(forge Forge, configAt string, starter []byte) []File {
	at := GitHubConfig
	if forge == GitLab {
		at = GitLabConfig
	}
	if configAt != "" {
		at = configAt
	}
	files := []File{{Path: at, Data: starter}}
	if forge == GitLab {
		return append(files, File{Path: GitLabTemplate, Data: templates.GitLab}, File{
			Path: GitLabPipeline, Data: []byte(Include), Extend: extendPipeline,
			Ask: "add to its include: list the entry `- local: " + GitLabTemplate + "`",
		})
	}
	return append(files, File{Path: GitHubWorkflow, Data: templates.GitHubWorkflow})
}

// Staged are the files of GitHub's door with a run split into jobs: the same but for the workflow.
func Staged(configAt string, starter []byte) []File {
	files := Files(GitHub, configAt, starter)
	files[len(files)-1].Data = templates.GitHubStaged
	return files
}
