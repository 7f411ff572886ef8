package script

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

const plenty = 1 << 20

// call runs a body as f(x).
func call(t *testing.T, body string, most int, x any) (any, error) {
	t.Helper()
	s, err := Compile("def f(x):\n    "+strings.ReplaceAll(body, "\n", "\n    "), "f", 1)
	if err != nil {
		t.Fatal(err)
	}
	return s.Call(most, x)
}

// The bodies use the whole language. Each gives what the reference implementation of Starlark gives.
func TestAsTheReferenceImplementation(t *testing.T) {
	for _, body := range []string{
		`return 7 // 2, -7 // 2, 7 // -2, 7 % 3, -7 % 3, 7 % -3, 7 / 2, 1 / 3, 6 * 7, 5 - 9, -3`,
		`return 7.5 // 2, -7.5 // 2, 7.5 % 2, -7.5 % 2, 7.5 % -2, 1e300 * 10, 2.0 * 3, 1 + 0.5, 1.0`,
		`return 5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 10, -1 >> 3, 1 << 62`,
		`return 1 == 1.0, 1 < 1.5, 1 != True, "a" < "b", [1, 2] < [1, 3], (1,) == (1,), {1: 2} == {1.0: 2}, None == None`,
		`return 9007199254740993 == 9007199254740992.0, 9007199254740993 > 9007199254740992.0, -1 < float("-inf")`,
		`return float("nan") == float("nan"), float("nan") > float("inf"), sorted([float("nan"), 1.0, -1])`,
		`return "abc" in "xabcx", 2 in [1, 2], "k" in {"k": 1}, 3 not in (1, 2), 4 in range(0, 10, 2)`,
		`return x + "!", x * 2, x[0], x[-1], x[1:], x[:-1], x[::-1], x[::2], x[5:2], x[-100:100], len(x)`,
		`return list(range(5))[::-2], (1, 2, 3)[1:], [1, 2, 3][-2:], list(range(10, 0, -3)), range(3)[1]`,
		`return "%s and %r, %d%%" % ("a", "b", 3), "%s" % 1.5, "%r" % [1, "x\ty"]`,
		`return str(1.5), str(1e6), str(1e20), str(1e21), str(1e-5), str(100000.0)`,
		`return repr("q\"\\\n"), str((1,)), str({"a": [None, True]})`,
		`return int("12"), int("-7"), int("ff", 16), int(3.9), int(-3.9), float("3.25"), float("1e3"), float(2)`,
		`return bool(""), str(12)`,
		`return "a,b,,c".split(","), " a  b ".split(), "a,b,c".split(",", 1), "a\nb\n".splitlines(), "-".join(["a", "b"])`,
		`return x.upper(), x.lower(), " x ".strip(), "xxaxx".strip("x"), "xxa".lstrip("x"), "axx".rstrip("x")`,
		`return "abab".find("b"), "abab".rfind("b"), "abab".find("z"), "abab".find("b", 2), "abab".index("b")`,
		`return "aaa".count("a"), "ab".count("")`,
		`return "abab".replace("a", "xy"), "abab".replace("a", "", 1), "a=b=c".partition("=")`,
		`return "a=b=c".rpartition("="), "abc".partition("z")`,
		`return "abc".startswith("ab"), "abc".endswith(("x", "bc")), "abc".removeprefix("a"), "abc".removesuffix("c")`,
		`return "12".isdigit(), "a1".isalnum(), "a".isalpha(), "".isdigit(), " ".isspace()`,
		`return sorted([3, 1, 2]), sorted(["b", "a"], reverse=True)`,
		`return sorted([(1, "b"), (0, "c"), (1, "a")], key=lambda p: p[0])`,
		`return max(1, 3, 2), min([4, 2, 8]), max(["a", "bbb"], key=len), abs(-4), abs(-2.5), any([0, 1]), all([1, 0])`,
		`return list(enumerate(["a", "b"], 1)), list(zip([1, 2], "ab".elems())), reversed([1, 2, 3]), tuple([1])`,
		`return list((1, 2))`,
		`d = {"a": 1, "b": 2}
d["c"] = 3
d.pop("a")
d["a"] = 4
d.setdefault("z", 9)
return d.keys(), d.values(), d.items(), d.get("q"), d.get("q", 5), len(d), d | {"a": 0}`,
		`l = [1]
l.append(2)
l.extend((3, 4))
l += [5]
l.insert(0, 0)
l.remove(3)
l[0] = -1
return l, l.pop(), l.pop(0), l.index(2)`,
		`total = 0
for i in range(10):
    if i == 3:
        continue
    if i > 6:
        break
    total += i
else_ = total
return else_`,
		`def g(a, b=2, c=3):
    return a * 100 + b * 10 + c
return g(1), g(1, 5), g(1, c=9), g(b=1, a=2)`,
		`k = 3
def add(v):
    return v + k
k = 4
return [add(i) for i in [0, 1]], {str(i): i for i in [0, 1] if i}, [(a, b) for a in [0, 1] for b in ["x", "y"]]`,
		`a, (b, c) = 1, [2, 3]
a, b = b, a
return a if b > c else c, a, b, not a, a and b, 0 or "z", None`,
		`return [type(v) for v in [None, True, 1, 1.0, "", (), [], {}, range(1)]]`,
		`return {(1, "a"): 1, (1.0, "a",): 1}.get((1, "a")) if False else {(1, "a"): 1}.get((1.0, "a"))`,
		`return dict([("a", 1)], b=2), dict({"k": 1})`,
		`return [fn(2) for fn in [lambda v: v + 1, lambda v, w=5: v * w]]`,
	} {
		got, err := call(t, body, plenty, "Hello")
		if err != nil {
			t.Errorf("%s\n%v", body, err)
			continue
		}
		source := "def f(x):\n    " + strings.ReplaceAll(body, "\n", "\n    ") + "\nout = f(\"Hello\")\n"
		globals, err := starlark.ExecFileOptions(&syntax.FileOptions{}, &starlark.Thread{}, "t", source, nil)
		if err != nil {
			t.Fatalf("the reference: %s\n%v", body, err)
		}
		if want := plain(globals["out"]); !reflect.DeepEqual(fmt.Sprint(got), fmt.Sprint(want)) {
			t.Errorf("%s\n gives %v\nwanted %v", body, got, want)
		}
	}
}

// plain is a value of the reference implementation as Call returns it.
func plain(v starlark.Value) any {
	switch v := v.(type) {
	case starlark.NoneType:
		return nil
	case starlark.Bool:
		return bool(v)
	case starlark.Int:
		n, _ := v.Int64()
		return n
	case starlark.Float:
		return float64(v)
	case starlark.String:
		return string(v)
	case *starlark.Dict:
		out := map[string]any{}
		for _, kv := range v.Items() {
			out[fmt.Sprint(plain(kv[0]))] = plain(kv[1])
		}
		return out
	case starlark.Iterable:
		out := []any{}
		for x := range starlark.Elements(v) {
			out = append(out, plain(x))
		}
		return out
	}
	return v
}

func TestWhatFails(t *testing.T) {
	for body, says := range map[string]string{
		`return 1 // 0`:                         "division by zero",
		`return 1.0 / 0`:                        "division by zero",
		`return 9223372036854775807 + 1`:        "more than 64 bits",
		`return 9223372036854775807 * 2`:        "more than 64 bits",
		`return 1 << 63`:                        "more than 64 bits",
		`return -(-9223372036854775807 - 1)`:    "more than 64 bits",
		`return [1][1]`:                         "index 1 of 1",
		`return {}["k"]`:                        "no key k",
		`return x.nothing`:                      "no method nothing",
		`return 1 < "a"`:                        "no order",
		`return x + 1`:                          "no meaning",
		`return f(x)`:                           "calls itself",
		`fail("because", 1)`:                    "because 1",
		`return {[]: 1}`:                        "cannot be a key",
		`return int("x")`:                       "no integer",
		`return float("0x10")`:                  "no number",
		"for i in [1]:\n    y = i\nreturn y+z":  "undefined: z",
		"l = [1]\nfor i in l:\n    l.append(i)": "while a loop goes over it",
		"if False:\n    y = 1\nreturn y":        "before it is assigned",
		`return len`:                            "the result is a builtin",
		"l = []\nl.append(l)\nreturn str(l)":    "nested more than 64 deep",
		"l = []\nl.append(l)\nreturn l":         "nested more than 64 deep",
		`while True: pass`:                      "while",
		`return {1, 2}`:                         "",
		`return b"x"`:                           "bytes",
		`return max(*x)`:                        "not supported",
		`return 9223372036854775808`:            "more than 64 bits",
		`load("a", "b")`:                        "load",
	} {
		s, err := Compile("def f(x):\n    "+strings.ReplaceAll(body, "\n", "\n    "), "f", 1)
		want := ErrSource
		if err == nil {
			_, err = s.Call(plenty, "Hello")
			want = ErrFailed
		}
		if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, wanted %q", body, err, says)
		}
	}
	for source, says := range map[string]string{
		"def f(x, y): return 1":     "2 parameters",
		"g = 1":                     "no function f",
		"def f(x:\n":                "reward:1",
		strings.Repeat("#", 20<<10): "bytes",
		"def f(*x): return 1":       "not supported",
	} {
		if _, err := Compile(source, "f", 1); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: %v, wanted %q", source, err, says)
		}
	}
}

// Sources that would take all memory or time of a machine end at the bound of their cost, and have little by then.
func TestCostBoundsTimeAndMemory(t *testing.T) {
	for name, body := range map[string]string{
		"loop":           "n = 0\nfor i in range(1 << 40):\n    n += 1",
		"doubled text":   "s = x\nfor i in range(100):\n    s = s + s",
		"repeated text":  "return x * (1 << 40)",
		"repeated list":  "return [0] * (1 << 40)",
		"doubled list":   "l = [1]\nfor i in range(100):\n    l += l",
		"long list":      "return list(range(1 << 40))",
		"sorted range":   "return sorted(range(1 << 40))",
		"max of a range": "return max(range(1 << 40))",
		"replaced":       "s = x\nfor i in range(100):\n    s = s.replace('l', 'llllllllll')",
		"joined":         "s = x\nfor i in range(100):\n    s = s.join([s] * 50)",
		"formatted":      "s = x\nfor i in range(100):\n    s = '%s%s%s' % (s, s, s)",
		"shared tuples":  "t = (1, 2)\nfor i in range(50):\n    t = (t, t)\nreturn {t: 1}",
		"shared lists":   "t = [1, 2]\nfor i in range(50):\n    t = [t, t]\nreturn str(t)",
		"compared lists": "t = [1]\nu = [1]\nfor i in range(50):\n    t = [t, t]\n    u = [u, u]\nreturn t == u",
		"given lists":    "t = [1, 2]\nfor i in range(50):\n    t = [t, t]\nreturn t",
		"calls":          "def g(v):\n    return [v for i in range(1000)]\nfor i in range(1 << 30):\n    g(i)",
		"searches":       "s = x * 1000\nfor i in range(1 << 30):\n    s.find('z')",
		"remainders":     "for i in range(1 << 30):\n    1.7e308 % 2.3e-308",
		"long numbers":   "for i in range(1 << 30):\n    float('1.7976931348623158079372897140530e308')",
		"named":          "for i in range(1 << 30):\n    dict(" + numbered("a%d=0", 250) + ")",
		"parameters": "def g(" + numbered("a%d=0", 250) + "):\n    return 0\nfor i in range(1 << 30):\n    g(" +
			numbered("a%d=1", 250) + ")",
		"reasons": "s = x * 20000\nfail(" + numbered("s+'%d'", 250) + ")",
		"itself":  "l = [0] * 100000\nl[0] = l\nreturn l",
		"keys":    "t = tuple(range(5000))\nfor i in range(1 << 30):\n    {t: 1}",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := call(t, body, plenty, "Hello")
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrCost) {
			t.Errorf("%s: %v", name, err)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 400*plenty {
			t.Errorf("%s: made %d bytes", name, made)
		}
	}
}

// Constructs that take long for their length cost as much as others that take as long.
func TestCostsFollowTheTime(t *testing.T) {
	for body, least := range map[string]int{
		"for i in range(10):\n    1.7e308 % 2.3e-308":                                      10 * 2000,
		"for i in range(10):\n    float('1.5')":                                            10 * 256,
		"for i in range(10):\n    dict(" + numbered("a%d=0", 100) + ")":                    10 * 100 * 100,
		"def g(" + numbered("a%d=0", 100) + "):\n    0\ng(" + numbered("a%d=1", 100) + ")": 100 * 100 / 4,
		"t = tuple(range(100))\nfor i in range(10):\n    {t: 1}":                           10 * 100 * 16,
		"l = [1, 2]\nm = l + []\nm[0] = 9\nif l[0] != 1:\n    fail()":                      0, // another list
	} {
		if _, err := call(t, body, plenty, ""); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if _, err := call(t, body, least, ""); !errors.Is(err, ErrCost) {
			t.Errorf("%s costs less than %d: %v", body, least, err)
		}
	}
}

// numbered is a list of a form with numbers.
func numbered(form string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(form, i))
	}
	return strings.Join(all, ", ")
}

// The cost of a call is a part of the protocol: it says which calls fail.
func TestCosts(t *testing.T) {
	const source = `
words = ["one", "two"]
def score(text):
    return len([w for w in text.split() if w in words]) / max(1, len(text))
def f(x):
    d = {k: score(k) for k in [x, x + " one", "%s two" % x]}
    return sorted(d.values())[-1]
`
	s, err := Compile(source, "f", 1)
	if err != nil {
		t.Fatal(err)
	}
	cost := func(x string) int {
		low, high := 0, plenty
		for low < high {
			if _, err := s.Call((low+high)/2, x); err == nil {
				high = (low + high) / 2
			} else {
				low = (low+high)/2 + 1
			}
		}
		return low
	}
	for x, want := range map[string]int{"one": 278, "": 250, strings.Repeat("one ", 100): 3175} {
		if got := cost(x); got != want {
			t.Errorf("%.10q costs %d, and not %d", x, got, want)
		}
	}
}

func FuzzCall(f *testing.F) {
	f.Add("def f(x):\n    return x.split()", "a b")
	f.Add("def f(x):\n    return sorted(x.elems(), key=lambda c: -int(c)) if x.isdigit() else {x: (1.5 // 2,)}", "3142")
	f.Add("l = [1]\ndef f(x):\n    for i in range(3):\n        l[i:i]\n    return '%s' % (l,)", "")
	f.Fuzz(func(t *testing.T, source, x string) {
		s, err := Compile(source, "f", 1)
		if err != nil {
			return
		}
		one, err1 := s.Call(20000, x)
		two, err2 := s.Call(20000, x)
		if fmt.Sprint(one) != fmt.Sprint(two) || fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Errorf("%v, %v, then %v, %v", one, err1, two, err2)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	s, err := Compile("def f(x):\n    n = 0\n    for i in range(1 << 20):\n        n = (n * 31 + i) % 1000003", "f", 1)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Call(1<<20, ""); !errors.Is(err, ErrCost) {
			b.Fatal(err)
		}
	}
}
