package judge

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
)

// Schema of an answer, for models that can be held to one.
const Schema = `{"type":"object","additionalProperties":false,"required":["nonce","verdict","findings"],"properties":{` +
	`"nonce":{"type":"string"},"verdict":{"type":"string","enum":["approve","reject"]},` +
	`"findings":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["category","severity","path","line","detail"],"properties":{` +
	`"category":{"type":"string","enum":["correctness","security","incomplete","gamed-tests","contract-break","style"]},` +
	`"severity":{"type":"string","enum":["high","medium","low"]},"path":{"type":"string"},"line":{"type":"integer"},"detail":{"type":"string"}}}}}}`

// Limits of an answer.
const (
	maxAnswer   = 256 << 10
	maxFindings = 200
	maxDetail   = 1000 // characters
)

// answer is the only shape that is read. Pointers tell a missing member from an empty one.
type answer struct {
	Nonce    *string        `json:"nonce"`
	Verdict  *string        `json:"verdict"`
	Findings *[]answerFound `json:"findings"`
}

type answerFound struct {
	Category *string `json:"category"`
	Severity *string `json:"severity"`
	Path     *string `json:"path"`
	Line     *int    `json:"line"`
	Detail   *string `json:"detail"`
}

// parse reads an answer strictly and computes the verdict from its findings. The decoder refuses duplicate and
// unknown members, members in another case, invalid UTF-8 and anything after the object; its error may quote the answer
// and is therefore not shown.
func parse(text, nonce string) (Verdict, error) {
	unreadable := func(format string, args ...any) (Verdict, error) {
		return Verdict{}, fmt.Errorf("%w: %s", ErrUnreadable, fmt.Sprintf(format, args...))
	}
	if len(text) > maxAnswer {
		return unreadable("it is %d bytes long, the limit is %d", len(text), maxAnswer)
	}
	var a answer
	if err := json.Unmarshal([]byte(text), &a, json.RejectUnknownMembers(true)); err != nil {
		return unreadable("it is not the one JSON object that was asked for")
	}
	switch {
	case a.Nonce == nil || a.Verdict == nil || a.Findings == nil:
		return unreadable("nonce, verdict or findings is missing")
	case nonce == "" || *a.Nonce != nonce:
		return unreadable("its nonce is not the one of this question")
	case *a.Verdict != "approve" && *a.Verdict != "reject":
		return unreadable("its verdict is neither approve nor reject")
	case len(*a.Findings) > maxFindings:
		return unreadable("it has %d findings, the limit is %d", len(*a.Findings), maxFindings)
	}
	out := Verdict{Approved: *a.Verdict == "approve"}
	for i, f := range *a.Findings {
		found, err := f.read()
		if err != nil {
			return unreadable("finding %d: %v", i+1, err)
		}
		out.Findings = append(out.Findings, found)
		// An approval beside a reason not to approve is none.
		out.Approved = out.Approved && !found.Category.Blocking()
	}
	if !out.Approved && len(out.Findings) == 0 {
		out.Findings = []Finding{{Category: Incomplete, Severity: "medium", Detail: "rejected without a reason; check the whole change against the goal"}}
	}
	return out, nil
}

func (f answerFound) read() (Finding, error) {
	if f.Category == nil || f.Severity == nil || f.Path == nil || f.Line == nil || f.Detail == nil {
		return Finding{}, errors.New("a member is missing")
	}
	switch Category(*f.Category) {
	case Correctness, Security, Incomplete, GamedTests, ContractBreak, Style:
	default:
		return Finding{}, errors.New("its category is unknown")
	}
	switch *f.Severity {
	case "high", "medium", "low":
	default:
		return Finding{}, errors.New("its severity is unknown")
	}
	if *f.Line < 0 {
		return Finding{}, errors.New("its line is negative")
	}
	detail := printable(*f.Detail)
	if detail == "" {
		return Finding{}, errors.New("it says nothing")
	}
	return Finding{Category: Category(*f.Category), Severity: *f.Severity, Path: printable(*f.Path), Line: *f.Line, Detail: detail}, nil
}

// printable makes one line of a model's text.
func printable(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	if r := []rune(s); len(r) > maxDetail {
		s = string(r[:maxDetail]) + "…"
	}
	return s
}
