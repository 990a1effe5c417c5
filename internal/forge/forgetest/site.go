package forgetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// site is the one repository with its issues, as both forges have it.
type site struct {
	server
	now    func() time.Time
	git    gitFront
	repo   *bareRepo
	branch string // the default branch

	state  sync.Mutex // guards everything below, and what a forge has beside it
	nextID int64
	users  map[string]*account
	ghost  account // what a deleted account shows as
	issues map[int]*issue
	ciJobs []*ciJob
	checks []*Check
}

// newSite makes the repository with its first commit; it does not listen yet.
func newSite(dir, owner, name, branch string, files fs.FS, now func() time.Time) (*site, error) {
	ctx := context.Background()
	backend, err := gitBackend(ctx)
	if err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp(mustDir(dir), "git-")
	if err != nil {
		return nil, fmt.Errorf("test forge: %w", err)
	}
	repo, err := newBareRepo(ctx, root, owner, name, branch, files)
	if err != nil {
		return nil, err
	}
	return &site{
		now: clockOr(now), git: gitFront{backend: backend, root: root}, repo: repo, branch: branch,
		users: map[string]*account{}, issues: map[int]*issue{},
	}, nil
}

func (s *site) id() int64 {
	s.nextID++
	return s.nextID
}

// AddUser makes an account with a role in the repository ("admin", "maintain", "write", "triage", "read" on GitHub,
// "owner", "maintainer", "developer", "reporter", "guest" on GitLab, "" for none) and gives its
// id. An account that is there gets the role.
func (s *site) AddUser(login, role string) int64 {
	s.state.Lock()
	defer s.state.Unlock()
	return s.addAccount(login, "User", role).id
}

func (s *site) addAccount(login, kind, role string) *account {
	key := strings.ToLower(login)
	if a := s.users[key]; a != nil {
		a.role = role
		return a
	}
	a := &account{login: login, kind: kind, role: role, id: s.id()}
	s.users[key] = a
	return a
}

func (s *site) addIfNew(login string) *account {
	if a := s.users[strings.ToLower(login)]; a != nil {
		return a
	}
	return s.addAccount(login, "User", "")
}

// user finds an account, or shows a deleted one as the forge does.
func (s *site) user(login string) *account {
	if a := s.users[strings.ToLower(login)]; a != nil {
		return a
	}
	ghost := s.ghost
	return &ghost
}

// GitDir is the bare repository on disk, for looking at what was pushed.
func (s *site) GitDir() string { return s.repo.dir }

// Commit replaces the whole tree of branch by files in one commit, as a maintainer's push would. A new
// branch starts from the default branch.
func (s *site) Commit(ctx context.Context, branch string, files fs.FS, message string) (string, error) {
	return s.repo.commit(ctx, branch, s.branch, files, message)
}

// Branch is the commit a branch points at, "" when there is none.
func (s *site) Branch(name string) string {
	id, _ := s.repo.branch(name)
	return id
}

// LockIssue locks the conversation.
func (s *site) LockIssue(number int) error {
	return s.onIssue(number, func(is *issue) error { is.locked = true; return nil })
}

func (s *site) onIssue(number int, f func(*issue) error) error {
	s.state.Lock()
	defer s.state.Unlock()
	is := s.issues[number]
	if is == nil {
		return fmt.Errorf("issue %d: there is no such issue", number)
	}
	return f(is)
}

// openPull is a pull request's branches as they are now; a head that is not here begins at the base.
func (s *site) openPull(head, base string, fromFork bool) *pull {
	baseSHA, _ := s.repo.branch(base)
	headSHA, err := s.repo.branch(head)
	if err != nil {
		headSHA = baseSHA
	}
	return &pull{head: head, base: base, headSHA: headSHA, baseSHA: baseSHA, fork: fromFork}
}

// answer reads a request and writes what perform says of it; trouble is the forge's word for a fault of its own.
func answer(w http.ResponseWriter, r *http.Request, trouble string, perform func(body []byte) (int, any, error)) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return
	}
	status, result, err := perform(body)
	var refused *apiError
	switch {
	case errors.As(err, &refused):
		writeJSON(w, refused.status, refused.body)
	case err != nil:
		writeJSON(w, http.StatusInternalServerError, obj{"message": trouble + ": " + err.Error()})
	default:
		if text, plain := result.(plainText); plain {
			w.WriteHeader(status)
			w.Write(text)
			return
		}
		writeJSON(w, status, result)
	}
}

// copies of deliveries, for whoever looks at them without the lock.
func copies(sent []*Delivery) []Delivery {
	out := make([]Delivery, len(sent))
	for i, d := range sent {
		out[i] = *d
	}
	return out
}
