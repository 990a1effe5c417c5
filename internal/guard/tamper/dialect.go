package tamper

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// dialect is how one language writes tests. Every expression but those of defs marked inStrings is
// matched against text whose comments are blanked.
type dialect struct {
	name     string
	exts     []string
	isTest   func(path string) bool          // nil: tests may stand in any file of the language
	unseen   func(path string) bool          // nil: none; paths that the runner leaves out on this platform or always
	hides    func(bare string, def int) bool // nil: nothing; the place of a definition keeps it from being collected
	indented bool                            // blocks are told by their indentation
	last     bool                            // of two tests of one name in one place only the last one runs
	syntax   syntax
	defs     []definition
	skip     *regexp.Regexp
	doubt    *regexp.Regexp // conditions and slices, which everyday tests have too
	assigns  *regexp.Regexp // a name is bound anew or unbound; the groups are owner and name, more than once
	own      *regexp.Regexp // of the skip marks those that act on the tests of their own file only
	skipRaw  *regexp.Regexp // matched against the text with its comments
	focus    *regexp.Regexp
	// asserts are places that can fail a test; vacuous ones can not; loose ones check little.
	asserts, vacuous, loose *regexp.Regexp
	swallow                 *regexp.Regexp
}

// definition finds tests. Its first group is where the test begins, the next one that took part its name.
type definition struct {
	re        *regexp.Regexp
	inStrings bool           // the name stands in a string
	head      *regexp.Regexp // what the annotations must say for it to be a test
}

func (d *dialect) speaks(p string) bool {
	ext := strings.ToLower(path.Ext(p))
	for _, e := range d.exts {
		if ext == e {
			return true
		}
	}
	return false
}

// collects says whether a runner would find tests in the file. A file that was there before is believed.
func (d *dialect) collects(p string, existed bool) bool {
	if d.isTest != nil && !d.isTest(p) {
		return false
	}
	return existed || d.unseen == nil || !d.unseen(p)
}

// replacedAsserts is another value for an assertion: on a class, or none at all on an instance. A field that is only
// named like one is not meant.
const replacedAsserts = `(?:(?:\b(?:\w+\.)*[A-Z]\w*\.assert(?:[A-Z]\w*|_(?:called|has|any|not|awaited)\w*)[ \t]*=[^=])|\b(?:self|cls)\.assert[A-Z]\w*[ \t]*=[ \t]*(?:lambda\b|None\b|\w*Mock\b)|\bsetattr\([^\n]*["']assert(?:[A-Z]|_(?:called|has|any|not|awaited)))`

// testClass is how a class of tests is named.
var testClass = regexp.MustCompile(`^Test[A-Z]\w*$|\w(?:Tests?|TestCase)$`)

// dialects are compiled once, when the first changed file needs them.
var dialects = sync.OnceValue(func() []*dialect {
	return []*dialect{goDialect(), python(), javascript(), rust(), jvm(), ruby(), php(), csharp(), shell()}
})

func re(s string) *regexp.Regexp { return regexp.MustCompile(s) }

var cStrings = []quote{{open: `"`, close: `"`}, {open: `'`, close: `'`}}

func goDialect() *dialect {
	return &dialect{
		name: "go", exts: []string{".go"},
		isTest: re(`(?:^|/)[^_./][^/]*_test\.go$`).MatchString,
		unseen: re(`(?:^|/)(?:testdata|[_.][^/]*)/|_(?:amd64|arm64|windows|plan9|js|wasm|wasip1|ios|android|aix|solaris|illumos|dragonfly|netbsd|openbsd|freebsd|darwin|mips\w*|ppc64\w*|riscv64|s390x|loong64|386|arm)_test\.go$`).MatchString,
		syntax: syntax{line: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: []quote{{open: "`", close: "`", multi: true, raw: true}, {open: `"`, close: `"`}, {open: `'`, close: `'`}}},
		defs:   []definition{{re: re(`(?m)^(func)\s+(?:\([^)\n]*\)\s*)?((?:Test|Fuzz|Example|Benchmark)(?:[^a-z\s(]\w*)?)\s*\(`)}},
		skip: re(`\.(?:Skip|Skipf|SkipNow)\(|\btesting\.Short\(\)|\brange[ \t]+[\w.]+\[[^\]\n:]*:[ \t]*\d+[ \t]*\]|` +
			`\bflag\.(?:Set|CommandLine\.Set)\([ \t]*"test\.`),
		doubt: re(`\bif\b[^\n{]*\b(?:os\.(?:Getenv|LookupEnv)|runtime\.GO(?:OS|ARCH))\b|\brange[ \t]+[\w.]+\[[^\]\n:]*:[ \t]*(?:[^\d\s\]][^\]\n]*)?\]`),
		// A build constraint takes the file out of the run.
		skipRaw: re(`(?m)^//\s*(?:go:build|\+build)\b`),
		asserts: re(`\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\b(?:assert|require|is|qt|check|must|td|gt|testza)\.\w+\(|\bt\.Run\(|\bExpect\(|\b[a-z]\w*(?:\.\w+)?\(t,`),
		vacuous: re(`\b(?:assert|require)\.(?:True\(t,\s*true|False\(t,\s*false|Nil\(t,\s*nil)\b`),
		loose:   re(`\b(?:assert|require)\.(?:True|False|NotNil|NotEmpty|NotZero|Contains|NotPanics|GreaterOrEqual|IsType|Implements)f?\(|\bBeTrue\(|\bNotTo\(BeNil|\bNot\(BeNil`),
		swallow: re(`\brecover\(\)`),
	}
}

func python() *dialect {
	return &dialect{
		name: "python", exts: []string{".py"},
		isTest: re(`(?i)(?:^|/)(?:test_[^/]*|[^/]*_tests?|tests?|conftest)\.py$`).MatchString,
		syntax: syntax{line: []string{"#"}, quotes: []quote{{open: `"""`, close: `"""`, multi: true}, {open: `'''`, close: `'''`, multi: true}, {open: `"`, close: `"`}, {open: `'`, close: `'`}}},
		defs:   []definition{{re: re(`(?m)^[ \t]*(?:async[ \t]+)?(def)[ \t]+(test\w*)[ \t]*\(`)}},
		hides:  pythonHides, last: true, indented: true,
		skip: re(`\bmark\.(?:skip(?:if)?|xfail)\b|@[ \t]*(?:skipif|xfail)\b|` + replacedAsserts + `|\bfor\b[^\n]*\bin[ \t]+[\w.]+\[[^\]\n:]*:[ \t]*\d+[ \t]*\]|` +
			`\bpytest\.(?:mark\.)?(?:skip(?:if)?|xfail|importorskip)\b|\b(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b[ \t]*(?:\(|$|\n)|\.skipTest\(|\bSkipTest\(|\b__test__\s*=\s*False|\bcollect_ignore(?:_glob)?\b|\bpytest_(?:collection_modifyitems|ignore_collect|runtest_makereport|runtest_protocol|runtest_call|report_teststatus|sessionfinish)\b`),
		doubt:   re(`\bif\b[^\n:]*\b(?:os\.environ|os\.getenv|getenv\(|sys\.platform)|\bfor\b[^\n]*\bin[ \t]+[\w.]+\[[^\]\n:]*:[ \t]*(?:[^\d\s\]][^\]\n]*)?\]`),
		assigns: re(`(?m)^[ \t]*(?:del[ \t]+(?:(\w+)\.)?(test\w*)|(?:(\w+)\.)?(test\w*)[ \t]*(?::[^=\n]*)?=[^=])|(?:^|[^.\w])(?:setattr|delattr)\([ \t]*(\w+)[^\n]*["'](test\w*)["']`),
		asserts: re(`(?m)^[ \t]*assert\b|\.assert\w+\(|\bpytest\.raises\(|\bpytest\.fail\(|\.fail\(|` +
			`\.assert_(?:called|awaited|has_calls|not_called|any_call)\w*\(`),
		vacuous: re(`(?m)^[ \t]*assert[ \t]+(?:True|1|not[ \t]+False|not[ \t]+None)[ \t]*(?:,.*)?\r?$|\.assertTrue\([ \t]*True\b|\.assertFalse\([ \t]*False\b`),
		loose:   re(`(?m)^[ \t]*assert[ \t]+[\w.\[\]()'", ]+(?:is not None)?[ \t]*\r?$|^[ \t]*assert[ \t]+isinstance\(|^[ \t]*assert[ \t].*[ \t](?:in|!=|>=|<=|or)[ \t]|\.assert(?:True|IsNotNone|In|IsInstance|GreaterEqual|LessEqual|NotEqual|Greater|Less|Regex)\(`),
		swallow: re(`\bexcept(?:[ \t]+\(?[^:\n]*(?:AssertionError|Exception)[^:\n]*)?[ \t]*:|\bcontextlib\.suppress\(|\bsuppress\(`),
	}
}

func javascript() *dialect {
	str := `(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|` + "`((?:[^`\\\\]|\\\\.)*)`)"
	return &dialect{
		name: "javascript", exts: []string{".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"},
		isTest: re(`(?i)\.(?:test|spec|cy|e2e)\.[cm]?[jt]sx?$|(?:^|/)(?:__tests__|tests?|specs?|e2e|cypress)/|(?:^|/)tests?\.[cm]?[jt]sx?$|[-_]test\.[cm]?[jt]sx?$`).MatchString,
		syntax: syntax{line: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: append([]quote{{open: "`", close: "`", multi: true}}, cStrings...)},
		defs: []definition{{inStrings: true, re: re(`(?:^|[^.\w$])((?:Deno\.)?(?:[xf]?(?:it|test|specify))(?:\.(?:skip|only|todo|fails|failing|concurrent|sequential|each|skipIf|runIf|for|serial|fixme|slow))*)\s*` +
			"(?:\\([^()]*\\)\\s*|`[^`]*`\\s*)?" + `\(\s*` + str)}},
		skip: re(`\bif[ \t]*\([^\n]*\)[ \t]*\{?[ \t]*(?:(?:describe|it|test|suite)(?:\.(?:each|only|concurrent|sequential|serial|parallel|describe))*[ \t]*[(` + "`" + `]|context[ \t]*\([ \t]*["'` + "`" + `])|\b(?:const|let|var)\s+(?:expect|assert)\s*=\s*(?:async\b|function\b|\(|\w+\s*=>)|\bfunction\s+(?:expect|assert)\s*\(|\b(?:global|globalThis)\.(?:expect|assert|it|test|describe)\s*=[^=]|` +
			`\b(?:it|test|describe|suite|context|specify|step)(?:\.\w+)*\.(?:skip|todo|fixme|failing|fails|skipIf|runIf)\b|(?:^|[^.\w$])x(?:it|test|describe|context|specify)\b[ \t]*(?:\.each)?[ \t]*[(` + "`]" + `|\bthis\.skip\(\)|\bt\.skip\(|\bctx\.skip\(|\b(?:skip|todo|ignore)[ \t]*:[ \t]*(?:true\b|['"])|\bpending\(`),
		doubt:   re(`\bif[ \t]*\([^)\n]*\bprocess\.env\b`),
		own:     re(`^(?:const|let|var|function)\s+(?:expect|assert)\b`),
		focus:   re(`\b(?:it|test|describe|suite|context|specify)(?:\.\w+)*\.only\b|(?:^|[^.\w$])f(?:it|describe|context|specify)\b[ \t]*\(|\bonly[ \t]*:[ \t]*true\b`),
		asserts: re(`\bexpect(?:\.soft|TypeOf)?\(|\bassert\w*(?:\.\w+)*\(|\.should\b|\bt\.(?:is|deepEqual|true|false|throws|truthy|falsy|like|regex|equal|same|ok|match|notThrows|throwsAsync|strictEqual|fail|end)\(|\bfail\(|\bcy\.contains\(`),
		vacuous: re(`\bexpect\(\s*(?:true|1)\s*\)\s*\.\s*(?:toBe|toEqual|toStrictEqual|toBeTruthy|to\.be\.true|to\.equal)\b|\bassert(?:\.ok)?\(\s*true\s*[,)]|\bt\.(?:true|ok|truthy)\(\s*true\s*[,)]|\bexpect\(\s*false\s*\)\s*\.\s*(?:toBe\(\s*false|toBeFalsy)`),
		loose:   re(`\.(?:toBeTruthy|toBeFalsy|toBeDefined|toBeUndefined|toBeNull|toBeInstanceOf|toContain|toMatchObject|toBeGreaterThanOrEqual|toBeLessThanOrEqual|toHaveProperty)\(|\.not\.to(?:BeNull|BeUndefined|Throw)\(|\bexpect\.(?:anything|any|objectContaining|stringContaining|arrayContaining)\(|\bassert\.(?:ok|isOk|exists|isDefined|isNotNull)\(|\.to\.(?:exist|be\.ok|be\.an?\()|\bt\.(?:truthy|ok)\(`),
		swallow: re(`\bcatch\b[ \t]*(?:\([^)]*\))?[ \t]*\{|\.catch\(`),
	}
}

func rust() *dialect {
	return &dialect{
		name: "rust", exts: []string{".rs"},
		// A single quote may begin a lifetime, so it never begins a string here.
		syntax: syntax{line: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: []quote{{open: `r#"`, close: `"#`, multi: true, raw: true}, {open: `'"'`, close: ``, raw: true}, {open: `"`, close: `"`, multi: true}}},
		defs: []definition{{
			re:   re(`(?m)^[ \t]*(?:#\[[^\n]*\][ \t]*)?(?:pub(?:\([^)]*\))?[ \t]+)?(?:async[ \t]+)?(fn)[ \t]+(\w+)`),
			head: re(`#\[\s*(?:\w+\s*::\s*)*(?:test|rstest|test_case|quickcheck|wasm_bindgen_test)\b`),
		}},
		skip:    re(`#!?\[\s*cfg\(\s*all\([^\]]*\btest\b|#\[\s*should_panic\b|#!\[\s*cfg\(|#\[\s*cfg\(\s*(?:not|any|feature|target_\w+|windows|unix|debug_assertions|panic|miri|all)\b[^\]]*\)\s*\](?:\s*#\[[^\]\n]*\])*\s*(?:#\[\s*test\b|(?:pub\s+)?mod\s+\w*tests?\b)|#\[\s*(?:cfg_attr\([^\]]*)?ignore\b|#!?\[\s*cfg\([^\]]*(?:any\(\)|FALSE|never|disabled)`),
		own:     re(`^#\[[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*(?:pub\s+)?mod\s+\w+\s*\{`),
		asserts: re(`\b(?:debug_)?assert\w*!|\bprop_assert\w*!|\bpanic!|\bshould_panic\b|\bassert_\w+!|\bunreachable!`),
		vacuous: re(`\bassert!\(\s*true\s*[,)]|\bassert_eq!\(\s*(?:true\s*,\s*true|1\s*,\s*1)\s*[,)]`),
		loose:   re(`\bassert!\([^;\n]*(?:is_ok|is_some|is_err|is_none|is_empty|contains|>=|<=|\|\|)|\bassert_ne!|\bassert!\(matches!`),
		swallow: re(`\bcatch_unwind\(`),
	}
}

func jvm() *dialect {
	// What Maven's Surefire and Failsafe look for, and the names that Kotlin's and Groovy's runners are used with.
	found := re(`(?:^|/)(?:Test[^/]*|IT[^/]*|[^/]*(?:Tests?|TestCase|IT|ITCase|Spec))\.\w+$`)
	mods := `(?:(?:public|protected|private|static|final|default|synchronized|abstract|open|override|suspend|internal)\s+)*`
	return &dialect{
		name:   "jvm",
		unseen: func(p string) bool { return !found.MatchString(p) },
		exts:   []string{".java", ".kt", ".kts", ".groovy", ".scala"},
		isTest: re(`(?i)(?:^|/)src/\w*test\w*/|(?:^|/)(?:test[^/]*|[^/]*(?:tests?|it|spec|testcase))\.(?:java|kts?|groovy|scala)$`).MatchString,
		syntax: syntax{line: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: append([]quote{{open: `"""`, close: `"""`, multi: true}}, cStrings...)},
		defs: []definition{
			{
				re:   re(`(?m)^[ \t]*(?:@[\w.]+(?:\([^)\n]*\))?[ \t]+)*` + mods + `(?:<[^>\n]+>\s*)?(fun|void|[\w.]+(?:<[^>\n]*>)?(?:\[\])?)[ \t]+(\w+|` + "`[^`\n]+`" + `)[ \t]*\(`),
				head: re(`@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property|Theory)\b`),
			},
			{re: re(`(?m)^[ \t]*public[ \t]+(void)[ \t]+(test\w*)[ \t]*\(`)},
		},
		skip:    re(`\babstract\s+class\s+\w*Tests?\b|@(?:\w+\.)*(?:Disabled\w*|Ignore|EnabledIf\w*|EnabledOnOs|Tag\([^)]*slow)\b|\bassume(?:True|False|That|Not\w*)\(|\bAssumptions?\.\w+\(|\benabled\s*=\s*false\b|\babort\(`),
		asserts: re(`\b(?:Assert(?:ions)?\.)?assert\w*\(|\bfail\(|\bverify\w*\(|\bshould\w*\b|\bexpect\w*\s*[({=]|\.andExpect\(|\bStepVerifier\.`),
		vacuous: re(`\bassertTrue\(\s*true\s*[,)]|\bassertFalse\(\s*false\s*[,)]|\bassertThat\(\s*true\s*\)|\bassertEquals\(\s*1\s*,\s*1\s*\)`),
		loose:   re(`\bassert(?:NotNull|True|NotEquals|DoesNotThrow|InstanceOf)\(|\.is(?:NotNull|NotEmpty|InstanceOf|GreaterThanOrEqualTo|LessThanOrEqualTo|NotEqualTo)\(|\bshouldNotBe\b|\.contains\(`),
		swallow: re(`\bcatch\s*\([^)]*(?:AssertionError|AssertionFailedError|Throwable|Exception|Error)\b`),
	}
}

func ruby() *dialect {
	return &dialect{
		name: "ruby", exts: []string{".rb"},
		isTest: re(`(?i)(?:^|/)(?:[^/]*_(?:spec|test)|test_[^/]*)\.rb$`).MatchString,
		syntax: syntax{line: []string{"#"}, block: [2]string{"\n=begin", "\n=end"}, quotes: []quote{{open: `"`, close: `"`, multi: true}, {open: `'`, close: `'`, multi: true}}, hash: true},
		defs: []definition{
			{inStrings: true, re: re(`(?m)^[ \t]*([xf]?(?:it|specify|example|scenario|test|should))[ \t(]+(?:"([^"\n]*)"|'([^'\n]*)')`)},
			{re: re(`(?m)^[ \t]*(def)[ \t]+(test_\w+[?!]?)`)},
		},
		skip:    re(`(?m)^[ \t]*(?:xit|xspecify|xexample|xscenario|xdescribe|xcontext|skip|pending)\b|\b(?:skip|pending)[ \t]*(?::[ \t]*(?:true|["'])|=>)|,[ \t]*:(?:skip|pending)\b|\bomit\b`),
		focus:   re(`(?m)^[ \t]*(?:fit|fspecify|fexample|fdescribe|fcontext|focus)\b|\bfocus:[ \t]*true\b|,[ \t]*:focus\b`),
		asserts: re(`\bexpect\b[ \t]*[({]|\bis_expected\b|\bassert\w*[?!]?\b|\brefute\w*\b|\.(?:must|wont)_\w+|\.should(?:_not)?\b|\bflunk\b`),
		vacuous: re(`\bexpect\([ \t]*true[ \t]*\)\.to[ \t]+(?:eq|be|be_truthy)|\bassert[ (]+true\b|\bassert_equal[ (]+(?:true,[ \t]*true|1,[ \t]*1)\b`),
		loose:   re(`\bbe_truthy\b|\bbe_falsey\b|\bbe_present\b|\bnot_to[ \t]+be_nil\b|\bbe_an?\b|\binclude\(|\brefute_nil\b|\bassert_not_nil\b|\bassert_includes\b|\bassert[ (]+[a-z]`),
		swallow: re(`(?m)\brescue\b`),
	}
}

func php() *dialect {
	return &dialect{
		name: "php", exts: []string{".php", ".phpt"},
		isTest: re(`(?i)(?:^|/)(?:[^/]*(?:test|spec|cest)\.php|[^/]*\.phpt)$|(?:^|/)tests?/`).MatchString,
		syntax: syntax{line: []string{"//", "#"}, block: [2]string{"/*", "*/"}, quotes: cStrings},
		defs: []definition{
			{re: re(`(?m)^[ \t]*(?:#\[[^\n]*\][ \t]*)?(?:(?:public|final|static)\s+)*(function)\s+(test\w*)\s*\(`)},
			{re: re(`(?m)^[ \t]*(?:(?:public|final|static)\s+)*(function)\s+(\w+)\s*\(`), head: re(`#\[\s*(?:\\?\w+\\)*Test\b`)},
			{inStrings: true, re: re(`(?m)^[ \t]*(it|test)\(\s*(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)')`)},
		},
		skip:    re(`\bmarkTest(?:Skipped|Incomplete)\(|->(?:skip|todo|skipOnCi)\(|#\[\s*(?:\\?\w+\\)*(?:Requires\w*|DoesNotPerformAssertions)\b|\bexpectNotToPerformAssertions\(`),
		skipRaw: re(`(?m)^[ \t]*\*[ \t]*@(?:group[ \t]+skip|requires|doesNotPerformAssertions)\b`),
		focus:   re(`->only\(`),
		asserts: re(`\bassert\w*\(|\bexpect\w*\(|->should\w*\(|\bfail\(`),
		vacuous: re(`\bassertTrue\(\s*true\s*[,)]|\bassertFalse\(\s*false\s*[,)]|\bexpect\(\s*true\s*\)->toBe(?:True)?\(`),
		loose:   re(`\bassert(?:True|NotNull|NotEmpty|NotEquals|IsArray|IsString|InstanceOf|NotSame|Contains|StringContainsString|GreaterThanOrEqual)\(|->toBe(?:Truthy|InstanceOf|Array|String)\(|->not->toBeNull\(`),
		swallow: re(`\bcatch\s*\([^)]*(?:AssertionFailed\w*|ExpectationFailed\w*|Throwable|Exception)\b`),
	}
}

func csharp() *dialect {
	return &dialect{
		name: "csharp", exts: []string{".cs"},
		isTest: re(`(?i)(?:^|/)[^/]*tests?\.cs$|(?:^|/)[^/]*tests?/|\.tests?/`).MatchString,
		syntax: syntax{line: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: append([]quote{{open: `"""`, close: `"""`, multi: true, raw: true}, {open: `@"`, close: `"`, multi: true, raw: true}}, cStrings...)},
		defs: []definition{{
			re:   re(`(?m)^[ \t]*(?:\[[^\n]*\][ \t]*)?(?:(?:public|private|protected|internal|static|async|virtual|override)\s+)+(void|[\w.]+(?:<[^>\n]*>)?)[ \t]+(\w+)[ \t]*\(`),
			head: re(`\[[^\]]*\b(?:Fact|Theory|Test|TestCase|TestCaseSource|TestMethod|DataTestMethod)\b`),
		}},
		skip:    re(`\bSkip\s*=|\[\s*(?:Ignore|Explicit)\b|\bAssert\.(?:Ignore|Inconclusive|Skip\w*)\(|\bSkip\.If\w*\(`),
		asserts: re(`\b(?:\w*Assert)\.\w+\(|\.Should\w*\(|\bVerify\w*\(|\.Received\w*\(`),
		vacuous: re(`\bAssert\.(?:True|IsTrue|That)\(\s*true\s*[,)]|\bAssert\.(?:False|IsFalse)\(\s*false\s*[,)]|\bAssert\.Pass\(`),
		loose:   re(`\bAssert\.(?:NotNull|IsNotNull|True|IsTrue|NotEqual|NotEmpty|AreNotEqual|Contains|IsType|IsInstanceOfType)\(|\.Should\(\)\.(?:NotBeNull|NotBe|BeOfType|NotBeEmpty|BeTrue)\(`),
		swallow: re(`\bcatch\b`),
	}
}

func shell() *dialect {
	return &dialect{
		name: "shell", exts: []string{".sh", ".bash", ".bats", ".zsh"},
		isTest: re(`(?i)\.bats$|(?:^|/)(?:test[^/]*|[^/]*(?:[-_.]tests?))\.(?:ba|z)?sh$|(?:^|/)tests?/`).MatchString,
		syntax: syntax{line: []string{"#"}, quotes: []quote{{open: `"`, close: `"`, multi: true}, {open: `'`, close: `'`, multi: true, raw: true}}, hash: true},
		defs: []definition{
			{inStrings: true, re: re(`(?m)^[ \t]*(@test)[ \t]+(?:"([^"\n]*)"|'([^'\n]*)')`)},
			{re: re(`(?m)^[ \t]*(?:function[ \t]+)?()(test_?\w+)[ \t]*\(\)`)},
		},
		skip:    re(`(?m)^[ \t]*(?:skip|startSkipping)\b|\|\|[ \t]*(?:true|:|exit[ \t]+0)(?:[ \t;)]|\r?$)|\bset[ \t]+\+e\b`),
		focus:   re(`\bbats:focus\b`),
		asserts: re(`(?m)\bassert\w*\b|\brefute\w*\b|^[ \t]*\[\[?[ \t]|^[ \t]*(?:test|grep|diff|cmp)[ \t]|\bfail\b|\bexit[ \t]+1\b|\breturn[ \t]+1\b`),
		vacuous: re(`(?m)^[ \t]*\[\[?[ \t]+1[ \t]+(?:-eq|==?)[ \t]+1[ \t]+\]\]?`),
		loose:   re(`(?m)^[ \t]*\[\[?[ \t]+(?:-n|!)[ \t]|\bassert_success\b|\bassert_output[ \t]+(?:--partial|-p)\b`),
	}
}
