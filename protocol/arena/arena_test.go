package arena

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
)

func terms() Terms {
	return Terms{Title: "a contest", Prize: 1000, Bond: 100, Deposit: 10, Fee: 7, Panel: 3, Set: canon.Sum("set"),
		Examples: 100, Vocab: 10, Length: 8, MaxBytes: 1000, Most: 4, Entering: 10, Revealing: 10, Judging: 10, Places: 3,
		Tokenizer: canon.Sum("tokenizer")}
}

func TestTerms(t *testing.T) {
	if err := terms().Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Terms){
		"no title":            func(t *Terms) { t.Title = "" },
		"a title in no text":  func(t *Terms) { t.Title = "a\nb" },
		"no prize":            func(t *Terms) { t.Prize = 0 },
		"a large prize":       func(t *Terms) { t.Prize = MaxAmount },
		"one evaluator":       func(t *Terms) { t.Panel = 1 },
		"no set":              func(t *Terms) { t.Set = canon.Digest{} },
		"few examples":        func(t *Terms) { t.Examples = MinExamples - 1 },
		"one token":           func(t *Terms) { t.Vocab = 1 },
		"a long example":      func(t *Terms) { t.Length = MaxLength + 1 },
		"no entries":          func(t *Terms) { t.Most = 0 },
		"many entries":        func(t *Terms) { t.Most = MaxEntries + 1 },
		"a short phase":       func(t *Terms) { t.Revealing = MinBlocks - 1 },
		"a long phase":        func(t *Terms) { t.Judging = MaxBlocks + 1 },
		"another curve":       func(t *Terms) { t.Curve = 3 },
		"no places":           func(t *Terms) { t.Places = 0 },
		"two winners":         func(t *Terms) { t.Curve, t.Places = Winner, 2 },
		"softmax of no width": func(t *Terms) { t.Curve = Softmax },
		"a width of a line":   func(t *Terms) { t.Width = 1 },
		"no tokenizer":        func(t *Terms) { t.Tokenizer = canon.Digest{} },
		"a page in a file":    func(t *Terms) { t.About = "file:///etc" },
		"a base without URL":  func(t *Terms) { t.Base = canon.Sum("base") },
		"another protocol":    func(t *Terms) { t.Base, t.BaseURL = canon.Sum("base"), "file:///etc" },
	} {
		c := terms()
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// ledger plays contests in memory: coins are conserved over the accounts, the pool and the contest.
type ledger struct {
	t        *testing.T
	c        Contest
	entries  []Entry
	opinions map[string]Opinion
	height   int64
	coins    map[string]int64
	from     []Candidate
	silent   map[string]bool
}

func play(t *testing.T, terms Terms) *ledger {
	t.Helper()
	c, err := Create(1, "host", terms, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{t: t, c: c, opinions: map[string]Opinion{}, coins: map[string]int64{}, silent: map[string]bool{}}
	l.coins["host"] -= int64(c.Held())
	for i := range 9 {
		l.from = append(l.from, Candidate{fmt.Sprint("judge", i), uint64(i + 1)})
	}
	return l
}

func (l *ledger) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *ledger) enter(who string) {
	l.t.Helper()
	c, e, err := l.c.Enter(who, Commitment(1, who, canon.Sum(who), canon.Sum("salt")), l.height)
	l.must(err)
	l.c, l.entries = c, append(l.entries, e)
	l.coins[who] -= int64(c.Terms.Deposit)
}

func (l *ledger) reveal(n uint32) {
	l.t.Helper()
	e := l.entries[n-1]
	c, e, err := l.c.RevealEntry(e, e.Account, canon.Sum(e.Account), canon.Sum("salt"), "http://x", l.height)
	l.must(err)
	l.c, l.entries[n-1] = c, e
}

// next makes blocks up to the end of the phase.
func (l *ledger) next() {
	l.t.Helper()
	before := l.c.Phase
	l.height = l.c.Until + 1
	heard := []Opinion{}
	for _, who := range l.c.Panel {
		if o, ok := l.opinions[who]; ok {
			heard = append(heard, o)
		}
	}
	c, freed, err := l.c.Turn(World{Height: l.height, Beacon: canon.Sum(fmt.Sprint("beacon", l.height)),
		Entries: l.entries, Opinions: heard, Candidates: func() ([]Candidate, error) { return l.from, nil }})
	l.must(err)
	for _, f := range freed {
		l.silent[f.Account] = f.Silent
	}
	for _, p := range c.Payments {
		l.coins[p.To] += int64(p.Amount)
	}
	l.c = c
	sum := int64(c.Held())
	for _, n := range l.coins {
		sum += n
	}
	if sum != 0 {
		l.t.Fatalf("after %s: %d grains are made: %+v", before, sum, c.Payments)
	}
}

func (l *ledger) seal(who string, r Report) {
	l.t.Helper()
	sealed := len(l.opinions) + 1
	for who := range l.opinions {
		if !slices.Contains(l.c.Panel, who) {
			sealed--
		}
	}
	c, o, err := l.c.Seal(who, r.Seal(1, who, canon.Sum("salt", []byte(who))), sealed, l.height)
	l.must(err)
	l.c, l.opinions[who] = c, o
}

func (l *ledger) open(who string, r Report) error {
	left := 0
	for _, other := range l.c.Panel {
		if o, ok := l.opinions[other]; ok && other != who && o.Report == nil {
			left++
		}
	}
	c, o, err := l.c.OpenReport(l.opinions[who], r, canon.Sum("salt", []byte(who)), l.entries, left, l.height)
	if err == nil {
		l.c, l.opinions[who] = c, o
	}
	return err
}

func placed(name string, mean uint64) Judged {
	return Judged{Status: Placed, Losses: canon.Sum(name), Mean: mean}
}

// three is a contest with three entries, of which the last is a copy of the first, up to the sealing of reports.
func three(t *testing.T) (*ledger, Report) {
	t.Helper()
	l := play(t, terms())
	for _, who := range []string{"ann", "bob", "cyd"} {
		l.enter(who)
	}
	l.next()
	var err error
	l.c, err = l.c.RevealSet("host", "http://x", l.height)
	l.must(err)
	for n := range uint32(3) {
		l.reveal(n + 1)
	}
	if l.c.Until != l.height {
		t.Fatal("the phase does not end early")
	}
	l.next()
	if l.c.Phase != Sealing || len(l.c.Panel) != 3 {
		t.Fatalf("%+v", l.c)
	}
	return l, Report{Entries: []Judged{placed("a", 2*Unit), placed("b", Unit), {Status: Copy, Of: 1}}}
}

func (l *ledger) grouped(r Report, beats bool) Report {
	r, err := l.c.Place(r, func(uint32, uint32) (bool, error) { return beats, nil })
	l.must(err)
	return r
}

// A whole contest: the prize is shared by places, the copy loses its deposit, an evaluator with another report has no
// fee, and one that is silent is named.
func TestContest(t *testing.T) {
	l, r := three(t)
	other := Report{Entries: slices.Clone(r.Entries)}
	other.Entries[0].Mean++
	for i, who := range l.c.Panel {
		l.seal(who, []Report{r, r, other}[i])
	}
	l.next()
	if l.c.Phase != Opening || l.c.Seed.IsZero() {
		t.Fatalf("%+v", l.c)
	}
	panel := l.c.Panel
	ranked := l.grouped(r, true)
	if err := l.open(panel[2], ranked); !errors.Is(err, ErrSeal) {
		t.Errorf("the report of another: %v", err)
	}
	l.must(l.open(panel[0], ranked))
	if err := l.open(panel[0], ranked); !errors.Is(err, ErrTwice) {
		t.Error(err)
	}
	l.must(l.open(panel[1], ranked))
	l.next()
	want := map[string]int64{"host": -1000 - 14, "ann": 400, "bob": 600, "cyd": -10, "": 10, panel[0]: 7, panel[1]: 7}
	if l.c.Phase != Paid || !maps.Equal(l.coins, want) {
		t.Errorf("%s: %+v, wanted %+v", l.c.Phase, l.coins, want)
	}
	if l.silent[panel[0]] || l.silent[panel[1]] || !l.silent[panel[2]] {
		t.Errorf("%+v", l.silent)
	}
}

// Entries that no duel tells apart share the prizes of their places.
func TestTies(t *testing.T) {
	l, r := three(t)
	for _, who := range l.c.Panel {
		l.seal(who, r)
	}
	l.next()
	for _, who := range l.c.Panel {
		l.must(l.open(who, l.grouped(r, false)))
	}
	l.next()
	if l.coins["ann"] != 500 || l.coins["bob"] != 500 {
		t.Errorf("%+v", l.coins)
	}
}

// Without a majority another panel is drawn, without the members of the first, and after three the prize goes back.
func TestPanels(t *testing.T) {
	l, r := three(t)
	seen := map[string]bool{}
	for n := range 3 {
		if l.c.Phase != Sealing || l.c.Draws != uint32(n+1) {
			t.Fatalf("%d: %+v", n, l.c)
		}
		for i, who := range l.c.Panel {
			if seen[who] {
				t.Errorf("%s is drawn again", who)
			}
			seen[who] = true
			other := Report{Entries: slices.Clone(r.Entries)}
			other.Entries[0].Mean += uint64(i)
			if n > 0 {
				l.seal(who, other)
			}
		}
		l.next()
		if n == 0 {
			continue // all were silent
		}
		for i, who := range l.c.Panel {
			other := Report{Entries: slices.Clone(r.Entries)}
			other.Entries[0].Mean += uint64(i)
			l.must(l.open(who, l.grouped(other, true)))
		}
		l.next()
	}
	if l.c.Phase != Void || l.c.Why != Undecided || l.coins["host"] != 0 || l.coins["ann"] != 0 || l.coins["cyd"] != 0 {
		t.Errorf("%+v, %+v", l.c, l.coins)
	}
}

// A contest without entries, without its set, or without evaluators returns what was locked; the bond of a host that
// hides the set is for the entrants.
func TestVoid(t *testing.T) {
	l := play(t, terms())
	l.next()
	if l.c.Why != Empty || l.coins["host"] != 0 {
		t.Errorf("%+v", l.c)
	}
	l = play(t, terms())
	for _, who := range []string{"ann", "bob", "cyd"} {
		l.enter(who)
	}
	l.next()
	l.reveal(1)
	l.next()
	want := map[string]int64{"host": -100, "ann": 33, "bob": 33, "cyd": 33, "": 1}
	if l.c.Why != Hidden || !maps.Equal(l.coins, want) {
		t.Errorf("%s: %+v", l.c.Why, l.coins)
	}
	l = play(t, terms())
	l.from = l.from[:2]
	l.enter("ann")
	l.next()
	l.reveal(1)
	l.c, _ = l.c.RevealSet("host", "http://x", l.height)
	l.next()
	if l.c.Why != Alone || l.coins["host"] != 0 || l.coins["ann"] != 0 {
		t.Errorf("%s: %+v", l.c.Why, l.coins)
	}
	l, _ = three(t) // the evaluators cannot get the set
	for _, who := range l.c.Panel {
		l.seal(who, Report{Absent: true})
	}
	l.next()
	for _, who := range l.c.Panel {
		l.must(l.open(who, Report{Absent: true}))
	}
	l.next()
	if l.c.Why != Hidden || l.coins["host"] != -100-21 || l.coins["ann"] != 33 {
		t.Errorf("%s: %+v", l.c.Why, l.coins)
	}
}

// A message of another party, in another phase, or with another model is refused.
func TestRefusals(t *testing.T) {
	l := play(t, terms())
	refused := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%v, wanted %v", err, want)
		}
	}
	_, _, err := l.c.Enter("host", canon.Sum("x"), 0)
	refused(err, ErrParty)
	_, _, err = l.c.Enter("ann", canon.Sum("x"), 11)
	refused(err, ErrPhase)
	_, err = l.c.RevealSet("host", "http://x", 0)
	refused(err, ErrPhase)
	for _, who := range []string{"ann", "bob", "cyd", "dan"} {
		l.enter(who)
	}
	_, _, err = l.c.Enter("eve", canon.Sum("x"), 0)
	refused(err, ErrFull)
	l.next()
	_, err = l.c.RevealSet("ann", "http://x", l.height)
	refused(err, ErrParty)
	_, err = l.c.RevealSet("host", "ftp://x", l.height)
	refused(err, ErrTerms)
	_, _, err = l.c.RevealEntry(l.entries[0], "bob", canon.Sum("ann"), canon.Sum("salt"), "http://x", l.height)
	refused(err, ErrParty)
	_, _, err = l.c.RevealEntry(l.entries[0], "ann", canon.Sum("bob"), canon.Sum("salt"), "http://x", l.height)
	refused(err, ErrEntry)
	l, r := three(t)
	_, _, err = l.c.Seal("judge", canon.Sum("x"), 1, l.height)
	refused(err, ErrParty)
	for name, change := range map[string]func(*Report){
		"too few":                  func(r *Report) { r.Entries = r.Entries[:2] },
		"entries without a set":    func(r *Report) { r.Absent = true },
		"unrevealed":               func(r *Report) { r.Entries[0] = Judged{Status: Unrevealed} },
		"no status":                func(r *Report) { r.Entries[0].Status = 0 },
		"no losses":                func(r *Report) { r.Entries[0].Losses = canon.Digest{} },
		"a copy with losses":       func(r *Report) { r.Entries[2].Losses = canon.Sum("x") },
		"a copy of a later one":    func(r *Report) { r.Entries[2].Of = 3 },
		"a copy of no base":        func(r *Report) { r.Entries[2].Of = 0 },
		"a copy of an invalid one": func(r *Report) { r.Entries[0] = Judged{Status: Invalid} },
		"a gap of groups":          func(r *Report) { r.Entries[0].Group = 3 },
		"the worse one first":      func(r *Report) { r.Entries[0].Group, r.Entries[1].Group = 1, 2 },
		"no group":                 func(r *Report) { r.Entries[0].Group = 0 },
	} {
		bad := l.grouped(r, true)
		change(&bad)
		if err := l.c.Check(bad, l.entries); !errors.Is(err, ErrReport) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Prizes are shared in full, whatever the curve, and fall with the place. exp is that of package math to a unit.
func TestShares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 192))
	for range 2000 {
		c := terms()
		c.Curve = Curve(r.IntN(3))
		c.Places = 1
		if c.Curve != Winner {
			c.Places = uint32(1 + r.IntN(10))
		}
		if c.Curve == Softmax {
			c.Width = uint32(1 + r.IntN(1_000_000))
		}
		var list []Ranked
		mean, group := uint64(r.IntN(Unit)), uint32(1)
		for i := range 1 + r.IntN(12) {
			if i > 0 && r.IntN(3) > 0 {
				group++
			}
			list = append(list, Ranked{uint32(i + 1), Judged{Status: Placed, Mean: mean, Group: group}})
			mean += uint64(r.IntN(Unit / 4))
		}
		prize := 1 + r.Uint64N(MaxAmount-1)
		shares, sum := c.Shares(prize, list), uint64(0)
		for i, s := range shares {
			sum += s
			if i > 0 && s > shares[i-1] {
				t.Fatalf("%+v: %v", list, shares)
			}
		}
		if sum != prize {
			t.Fatalf("%d of %d", sum, prize)
		}
	}
	for x := 0.0; x < 25; x += 0.01 {
		if got, want := float64(expNeg(uint64(x*(1<<32)))), math.Exp(-x)*(1<<32); math.Abs(got-want) > 4 {
			t.Errorf("e^-%g is %g, wanted %g", x, got, want)
		}
	}
	c := terms()
	c.Curve, c.Width, c.Places = Softmax, 50_000, 2
	list := []Ranked{{1, Judged{Group: 1}}, {2, Judged{Group: 2, Mean: Unit / 20}}, {3, Judged{Group: 3, Mean: Unit}}}
	if got := c.Shares(1_000_000, list); got[2] != 0 || got[0] < 731_000 || got[0] > 731_100 { // 1/(1+1/e)
		t.Errorf("%v", got)
	}
}

// Panels are drawn in proportion to stake, without the host and entrants.
func TestDraw(t *testing.T) {
	c := Contest{ID: 1, Host: "host", Terms: terms(), Spent: []string{"spent"}}
	from := []Candidate{{"host", 99}, {"spent", 99}, {"ann", 99}, {"none", 0}, {"a", 60}, {"b", 30}, {"c", 10}, {"d", 1}}
	first := map[string]int{}
	for n := range 2000 {
		panel := c.draw(from, []Entry{{Account: "ann"}}, canon.Sum(fmt.Sprint(n)))
		if len(panel) != 3 || strings.Trim(strings.Join(panel, ""), "abcd") != "" {
			t.Fatal(panel)
		}
		first[panel[0]]++
	}
	if first["a"] < 1080 || first["a"] > 1300 || first["b"] < 500 || first["b"] > 690 {
		t.Errorf("%+v", first)
	}
}

func TestEvaluators(t *testing.T) {
	if _, err := (Evaluator{}).Offer(MinBond - 1); !errors.Is(err, ErrEvaluator) {
		t.Error(err)
	}
	e, err := Evaluator{Account: "ann"}.Offer(MinBond)
	if err != nil || !e.Ready {
		t.Errorf("%+v, %v", e, err)
	}
	e.Panels = 2
	if _, err := e.Retire(); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	e, lost := e.Release(false)
	if lost > 0 || !e.Ready {
		t.Errorf("%+v", e)
	}
	if e, lost = e.Release(true); lost != MinBond/10 || e.Ready || e.Bond != MinBond-lost {
		t.Errorf("%+v", e)
	}
	if _, err := e.Offer(lost); err != nil {
		t.Error(err)
	}
}

// A report of a stranger decodes to the same bytes, or is refused, and one that is taken can be paid.
func FuzzReport(f *testing.F) {
	r := Report{Entries: []Judged{placed("a", 2*Unit), placed("b", Unit), {Status: Copy, Of: 1}}}
	r.Entries[0].Group, r.Entries[1].Group = 2, 1
	f.Add(canon.MustMarshal(r))
	f.Add(canon.MustMarshal(Report{Absent: true}))
	c, err := Create(1, "host", terms(), 0)
	if err != nil {
		f.Fatal(err)
	}
	entries := []Entry{{Account: "a", Model: canon.Sum("a")}, {Account: "b", Model: canon.Sum("b")},
		{Account: "c", Model: canon.Sum("c")}}
	c.Entries, c.Phase = 3, Opening
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeReport(data)
		if err != nil {
			return
		}
		if again := canon.MustMarshal(r); string(again) != string(data) {
			t.Errorf("%x is %x", data, again)
		}
		for _, j := range r.Entries {
			_ = j.Status.String()
		}
		if c.Check(r, entries) != nil {
			return
		}
		paid := uint64(0)
		for _, p := range c.settle(r, World{Entries: entries}).Payments {
			paid += p.Amount
		}
		if paid != c.Held() {
			t.Errorf("%d of %d are paid", paid, c.Held())
		}
	})
}
