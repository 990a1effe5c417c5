package forgetest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// CommitSigning is what GitHub does for bots, and an Enterprise Server without web commit signing does not. It starts on.
func CommitSigning(on bool) Setting { return func(g *GitHub) { g.signingOff = !on } }

// person is an author or a committer.
type person struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	Date  time.Time `json:"date"`
}

func (p person) String() string {
	return fmt.Sprintf("%s <%s> %d +0000", p.Name, p.Email, p.Date.Unix())
}

func (p person) json() obj { return obj{"name": p.Name, "email": p.Email, "date": stampOf(p.Date)} }

// createCommit makes a commit that no ref points at. It is signed where a job or an App asks and names neither author, committer nor signature:
// "Signature verification for bots will only work if the request is verified and authenticated as the GitHub App or bot and contains no custom
// author information, custom committer information, and no custom signature information, such as Commits API."
// https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
func createCommit(c *call) (int, any, error) {
	var in struct {
		Message   string   `json:"message"`
		Tree      string   `json:"tree"`
		Parents   []string `json:"parents"`
		Author    *person  `json:"author"`
		Committer *person  `json:"committer"`
		Signature string   `json:"signature"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	if err := c.mayWrite("write"); err != nil {
		return 0, nil, err
	}
	switch kinds := c.g.repo.kinds(c.r.Context(), append([]string{in.Tree}, in.Parents...)...); {
	case kinds[0] != "tree":
		return 0, nil, unprocessable("Tree SHA does not exist")
	case slices.ContainsFunc(kinds[1:], func(kind string) bool { return kind != "commit" }):
		return 0, nil, unprocessable("Parent SHA does not exist or is not a commit object")
	}
	signs := (c.token.Job || c.token.Installation) && in.Author == nil && in.Committer == nil && in.Signature == "" && !c.g.signingOff
	a := c.g.user(c.token.Login)
	author := person{a.login, fmt.Sprintf("%d+%s@users.noreply.%s", a.id, a.login, c.g.mailHost()), c.g.now()}
	committer := author
	switch {
	case in.Author != nil:
		author, committer = *in.Author, *in.Author
	case signs:
		committer = person{"GitHub", "noreply@" + c.g.mailHost(), author.Date}
	}
	if in.Committer != nil {
		committer = *in.Committer
	}
	head := "tree " + in.Tree + "\n"
	for _, p := range in.Parents {
		head += "parent " + p + "\n"
	}
	head += "author " + author.String() + "\ncommitter " + committer.String() + "\n"
	verification := obj{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil}
	text := head + "\n" + in.Message
	if signs {
		verification = obj{"verified": true, "reason": "valid", "signature": c.g.sign(text), "payload": text, "verified_at": stampOf(c.g.now())}
		text = head + "gpgsig " + strings.ReplaceAll(verification["signature"].(string), "\n", "\n ") + "\n\n" + in.Message
	}
	id, err := c.g.repo.write(c.r.Context(), text)
	if err != nil {
		return 0, nil, err
	}
	parents := []obj{}
	for _, p := range in.Parents {
		parents = append(parents, obj{"sha": p, "url": c.g.repoURL() + "/git/commits/" + p, "html_url": c.g.webURL() + "/commit/" + p})
	}
	return http.StatusCreated, obj{
		"sha": id, "node_id": nodeID("C_"+id, 0), "url": c.g.repoURL() + "/git/commits/" + id, "html_url": c.g.webURL() + "/commit/" + id,
		"author": author.json(), "committer": committer.json(), "message": in.Message, "tree": obj{"sha": in.Tree, "url": c.g.repoURL() + "/git/trees/" + in.Tree},
		"parents": parents, "verification": verification,
	}, nil
}

// unprocessable is a 422 as the description has it for this call: without the status in words that refusals carry otherwise.
func unprocessable(message string) *apiError {
	e := refuse(http.StatusUnprocessableEntity, message)
	delete(e.body, "status")
	return e
}

// mailHost is of the addresses that the forge gives out.
func (g *GitHub) mailHost() string {
	if g.opt.Enterprise {
		return "ghe.example.com"
	}
	return "github.com"
}

// kinds of objects: "tree", "commit", or another word where one is not there.
func (r *bareRepo) kinds(ctx context.Context, ids ...string) []string {
	cmd := exec.CommandContext(ctx, "git", "cat-file", "--batch-check=%(objecttype)")
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, gitEnv(), strings.NewReader(strings.Join(ids, "\n")+"\n")
	out, _ := cmd.Output() // what is not told is not there
	return append(strings.Split(strings.TrimSpace(string(out)), "\n"), make([]string, len(ids))...)[:len(ids)]
}

// write stores a commit as it is.
func (r *bareRepo) write(ctx context.Context, commit string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", "hash-object", "-t", "commit", "-w", "--stdin")
	var stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = r.dir, gitEnv(), strings.NewReader(commit), &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("store a commit: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// AllowedSigners is the forge's public key as `git -c gpg.ssh.allowedSignersFile=… verify-commit` reads it. GitHub signs by OpenPGP; this
// forge by SSH, which takes nothing but the standard library and which git verifies too.
func (g *GitHub) AllowedSigners() string {
	g.state.Lock()
	defer g.state.Unlock()
	return fmt.Sprintf("noreply@%s ssh-ed25519 %s\n", g.mailHost(), base64.StdEncoding.EncodeToString(sshKey(g.signer())))
}

// signer is the forge's key, made when it is first needed.
func (g *GitHub) signer() ed25519.PrivateKey {
	if g.signingKey == nil {
		_, g.signingKey, _ = ed25519.GenerateKey(rand.Reader) // never fails
	}
	return g.signingKey
}

// sign is OpenSSH's detached signature for git, armoured. Source: PROTOCOL.sshsig of OpenSSH.
func (g *GitHub) sign(text string) string {
	const magic, namespace, algorithm = "SSHSIG", "git", "sha512"
	sum := sha512.Sum512([]byte(text))
	key := g.signer()
	signed := append([]byte(magic), sshStrings(namespace, "", algorithm, string(sum[:]))...)
	blob := binary.BigEndian.AppendUint32([]byte(magic), 1)
	blob = append(blob, sshStrings(string(sshKey(key)), namespace, "", algorithm, string(sshStrings("ssh-ed25519", string(ed25519.Sign(key, signed)))))...)
	var b strings.Builder
	b.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for rest := base64.StdEncoding.EncodeToString(blob); rest != ""; {
		n := min(70, len(rest))
		b.WriteString(rest[:n] + "\n")
		rest = rest[n:]
	}
	return b.String() + "-----END SSH SIGNATURE-----\n"
}

func sshKey(key ed25519.PrivateKey) []byte {
	return sshStrings("ssh-ed25519", string(key.Public().(ed25519.PublicKey)))
}

// sshStrings are strings as SSH's wire format has them.
func sshStrings(all ...string) (out []byte) {
	for _, s := range all {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(s))), s...)
	}
	return out
}
