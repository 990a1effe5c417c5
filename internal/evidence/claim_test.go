package evidence

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAClaimComesBackFromTheBodyItWasWrittenInto(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Record{"done": sample(), "huge": huge(), "poisoned": poisoned("--> <!-- @x #1 closes #2")} {
		want, ok := r.Claim()
		if !ok {
			t.Fatalf("%s: a done run claims nothing", name)
		}
		for _, limit := range []int{0, 4000} {
			got, ok := PullRequestClaim(PRBody(r, limit))
			if d := cmp.Diff(want, got); !ok || d != "" {
				t.Errorf("%s cut to %d: %v (-record +body):\n%s", name, limit, ok, d)
			}
		}
	}
}

func TestAClaimIsTheLastProofAndWhatItLookedAt(t *testing.T) {
	t.Parallel()
	done, _ := sample().Claim()
	want := []ClaimedGate{{"iteration", "iteration", "passed", 0}, {"regression", "regression", "passed", 0}, {"acceptance", "acceptance", "passed", 0}}
	if d := cmp.Diff(want, done.Gates); d != "" || done.Head != *commit("2") || done.Base != *commit("b") {
		t.Errorf("%+v\n%s", done, d)
	}
	overfit := ended(t, Overfit)
	overfit.Ticks = overfit.Ticks[:1]
	red, ok := overfit.Claim()
	if !ok || red.Head != *commit("1") || len(red.Gates) != 2 || red.Gates[1].Status != "failed" || red.Gates[1].Exit != 1 {
		t.Errorf("a red proof claims %+v, %v", red, ok)
	}
	never := ended(t, NoProgress)
	for i := range never.Ticks {
		never.Ticks[i].Proof = nil
	}
	if c, ok := never.Claim(); ok {
		t.Errorf("a run that never proved anything claims %+v", c)
	}
	resumed := sample()
	resumed.Resumed, resumed.Ticks = []string{"run-41"}, nil
	if c, ok := resumed.Claim(); !ok || c.Head != *commit("2") || len(c.Gates) != 0 {
		t.Errorf("a run that publishes what an earlier one proved claims %+v, %v", c, ok)
	}
}

func TestABodyThatIsNotOursClaimsNothing(t *testing.T) {
	t.Parallel()
	body := PRBody(sample(), 0)
	first, rest, _ := strings.Cut(body, "\n")
	marker, _, _ := strings.Cut(rest, "\n")
	for name, b := range map[string]string{
		"empty":                       "",
		"words before it":             "Hello\n" + body,
		"no claim":                    first + "\n## Proved\n",
		"a claim alone":               marker + "\n",
		"the markers disagree":        strings.Replace(body, hexid("2", 40), hexid("3", 40), 1),
		"cut":                         first + "\n" + marker[:len(marker)/2],
		"not encoded":                 first + "\n" + claimMarkerHead + `{"run":"x"}` + pullMarkerTail,
		"a claim of another program":  first + "\n" + claimMarkerHead + "e30" + pullMarkerTail, // {}
		"a claim of ids with options": first + "\n" + Claim{Base: Commit{"--upload-pack=x", hexid("1", 40)}, Head: *commit("2"), Config: "sha256:" + hexid("c", 64)}.marker(),
	} {
		if c, ok := PullRequestClaim(b); ok {
			t.Errorf("%s: claims %+v", name, c)
		}
	}
	if _, ok := PullRequestClaim(body); !ok {
		t.Fatal("the control claims nothing")
	}
}

// INV-15: a head is what was proved where it is that commit, or the one that the forge signed in its place; the proved one is then not the head.
func TestAClaimKnowsItsCommitOnTheBranch(t *testing.T) {
	t.Parallel()
	plain, signed := Claim{Head: Commit{ID: "a"}}, Claim{Head: Commit{ID: "a"}, Pushed: "b"}
	for commit, want := range map[string][2]bool{"a": {true, false}, "b": {false, true}, "c": {}, "": {}} {
		if got := [2]bool{plain.Proves(commit), signed.Proves(commit)}; got != want {
			t.Errorf("%q: plain and signed say %v, want %v", commit, got, want)
		}
	}
}
