package committee

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/arena"
)

func terms() Terms {
	return Terms{Rounds: 40, Pay: 1000, Drawn: 4, Stake: minStake, Window: 5, Members: 10, Job: canon.Sum("job"),
		Round: arena.Terms{Title: "a committee", Bond: 90, Fee: 7, Panel: 5, Examples: 100, Vocab: 10, Length: 8,
			MaxBytes: 1000, Entering: 10, Revealing: 10, Judging: 10, Tokenizer: canon.Sum("tokenizer"),
			About: "http://127.0.0.1/"}}
}

func TestTerms(t *testing.T) {
	if err := terms().Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Terms){
		"no rounds":       func(t *Terms) { t.Rounds = 0 },
		"many rounds":     func(t *Terms) { t.Rounds = MaxRounds + 1 },
		"no pay":          func(t *Terms) { t.Pay = 0 },
		"a large fee":     func(t *Terms) { t.Round.Fee = arena.MaxAmount },
		"none drawn":      func(t *Terms) { t.Drawn = 0 },
		"few members":     func(t *Terms) { t.Members = t.Drawn - 1 },
		"a small stake":   func(t *Terms) { t.Stake = minStake - 1 },
		"an even window":  func(t *Terms) { t.Window = 4 },
		"no job":          func(t *Terms) { t.Job = canon.Digest{} },
		"no page":         func(t *Terms) { t.Round.About = "" },
		"a prize":         func(t *Terms) { t.Round.Prize = 1 },
		"a set":           func(t *Terms) { t.Round.Set = canon.Sum("set") },
		"an even panel":   func(t *Terms) { t.Round.Panel = 4 },
		"a short phase":   func(t *Terms) { t.Round.Judging = 1 },
		"a title on two":  func(t *Terms) { t.Round.Title = "a\nb" },
		"no tokenizer":    func(t *Terms) { t.Round.Tokenizer = canon.Digest{} },
		"much evaluation": func(t *Terms) { t.Round.Examples, t.Round.Length = arena.MaxExamples, arena.MaxLength },
	} {
		c := terms()
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// ledger plays rounds of a committee in memory: coins are conserved.
type ledger struct {
	t       *testing.T
	c       Committee
	members map[string]Member
	coins   map[string]int64 // of accounts, and of the community pool as ""
	stakes  int64
	height  int64
}

func play(t *testing.T, terms Terms, members int) *ledger {
	t.Helper()
	c, err := Convene(1, "host", terms, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{t: t, c: c, members: map[string]Member{}, coins: map[string]int64{"host": -int64(c.Left)}}
	for i := range members {
		l.join(fmt.Sprint("member", i), minStake)
	}
	return l
}

func (l *ledger) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *ledger) join(who string, stake uint64) {
	l.t.Helper()
	c, m, err := l.c.Join(l.members[who], who, stake)
	l.must(err)
	l.c, l.members[who] = c, m
	l.stakes += int64(stake)
}

func (l *ledger) paid(list []arena.Payment) {
	for _, p := range list {
		l.coins[p.To] += int64(p.Amount)
	}
}

// round plays a round in which members have gains, and a round without reports where there are none. It returns the
// contest.
func (l *ledger) round(gain func(who string) (int64, bool), reports int, lie func(*arena.Report, int)) arena.Contest {
	l.t.Helper()
	set := canon.Sum("set", []byte{byte(l.height)})
	c, err := l.c.Begin("host", canon.Sum("model"), "http://host/", set, l.height)
	l.must(err)
	l.height++
	var all []Member
	for _, m := range l.members {
		all = append(all, m)
	}
	c, r, _, err := c.Draw(7, all, set, l.height)
	l.must(err)
	if r == nil {
		l.t.Fatal("no round")
	}
	var entries []arena.Entry
	truth := arena.Report{Base: 5000}
	contest := *r
	for _, who := range contest.Invited {
		g, enters := gain(who)
		if !enters {
			continue
		}
		var e arena.Entry
		contest, e, err = contest.Enter(who, canon.Sum(who), l.height)
		l.must(err)
		e.Model = canon.Sum("model", []byte(who))
		entries = append(entries, e)
		truth.Entries = append(truth.Entries, arena.Judged{Status: arena.Placed, Losses: canon.Sum("x"),
			Mean: uint64(5000 - g)})
	}
	w := arena.World{Height: l.height, Entries: entries}
	contest.Phase, contest.Until, contest.SetURL = arena.Opening, l.height-1, "http://host/"
	for k := range reports {
		who := fmt.Sprint("judge", k)
		contest.Panel = append(contest.Panel, who)
		x := truth
		x.Entries = slices.Clone(truth.Entries)
		if lie != nil {
			lie(&x, k)
		}
		w.Opinions = append(w.Opinions, arena.Opinion{Account: who, Report: &x})
	}
	if len(entries) == 0 {
		contest.Phase = arena.Entering
	}
	contest, _, err = contest.Turn(w)
	l.must(err)
	if contest.Open() {
		l.t.Fatalf("the round is %s", contest.Phase)
	}
	var invited []Member
	for _, who := range contest.Invited {
		invited = append(invited, l.members[who])
	}
	c, contest, after, payments, lost := c.Settle(contest, entries, w.Opinions, invited, l.height)
	l.c = c
	for _, m := range after {
		l.members[m.Account] = m
	}
	l.paid(payments)
	l.stakes -= int64(lost)
	sum, staked := int64(c.Left), uint64(0)
	for _, n := range l.coins {
		sum += n
	}
	for _, m := range l.members {
		staked += m.Stake
	}
	if sum != 0 || int64(staked) != l.stakes || c.Staked != staked {
		l.t.Fatalf("coins %d, stakes %d, %d and %d", sum, l.stakes, staked, c.Staked)
	}
	return contest
}

func TestPayFollowsTheMedianOfTheLastRounds(t *testing.T) {
	l := play(t, terms(), 4)
	for round := range 7 {
		r := l.round(func(who string) (int64, bool) {
			switch who {
			case "member0":
				return 1000, true
			case "member1":
				return 500, true
			case "member2": // lucky once
				if round == 3 {
					return 800, true
				}
				return -300, true
			}
			return 0, round != 2 // silent once
		}, 5, nil)
		paid := map[string]arena.Outcome{}
		for _, o := range r.Outcomes {
			paid[o.Account] = o
		}
		if paid["member0"].Paid != 666 || paid["member1"].Paid != 333 {
			t.Errorf("round %d: %+v", round, paid)
		}
		why := arena.Worse
		if round == 3 {
			why = arena.Unsteady
		}
		if o := paid["member2"]; o.Paid != 0 || o.Why != why {
			t.Errorf("round %d: %+v", round, o)
		}
		o, drawn := paid["member3"]
		switch {
		case round > 2 && drawn:
			t.Errorf("round %d draws a member that was silent", round)
		case round == 2 && (o.Why != arena.Silent || o.Lost != minStake/10):
			t.Errorf("%+v", o)
		}
	}
}

// A member that leaves and comes back has the scores that it had, and no more stake than it locks again. Of an account
// that was never drawn nothing stays.
func TestARecordOutlivesLeaving(t *testing.T) {
	l := play(t, terms(), 4)
	for range 3 {
		l.round(func(who string) (int64, bool) {
			if who == "member1" {
				return -1, true
			}
			return 100, true
		}, 5, nil)
	}
	had := l.members["member1"]
	c, record, stake, err := l.c.Leave(had, nil)
	if err != nil || stake != had.Stake || !record.Away || record.Stake != 0 || c.Members != 3 {
		t.Fatalf("%+v, %d, %v", record, stake, err)
	}
	if _, _, _, err := c.Leave(record, nil); !errors.Is(err, ErrMember) {
		t.Errorf("it left twice: %v", err)
	}
	if _, _, err := c.Join(record, "member1", minStake-1); !errors.Is(err, ErrStake) {
		t.Errorf("the stake that came back counts: %v", err)
	}
	full := c
	full.Members = full.Terms.Members
	if _, _, err := full.Join(record, "member1", minStake); !errors.Is(err, ErrMember) {
		t.Errorf("a full committee: %v", err)
	}
	c, back, err := c.Join(record, "member1", minStake)
	if err != nil || !slices.Equal(back.Scores, had.Scores) || back.Drawn != 3 || back.Stake != minStake || back.Away ||
		!back.Ready || c.Members != 4 || c.Staked != l.c.Staked {
		t.Errorf("%+v, %+v, %v", back, c, err)
	}
	_, never, _, err := l.c.Leave(Member{Account: "x", Stake: 1}, nil)
	if err != nil || never.Away {
		t.Errorf("%+v, %v", never, err)
	}
	over := l.c
	over.Phase = Over
	if _, record, _, err := over.Leave(had, nil); err != nil || record.Away {
		t.Errorf("a committee that is over keeps a record: %+v, %v", record, err)
	}
}

// A minority of evaluators moves no gain, whatever it reports, and is paid nothing for it.
func TestAMinorityMovesNoGain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		l := play(t, terms(), 4)
		gain := func(who string) (int64, bool) { return int64(who[6]-'0') * 100, true }
		r := l.round(gain, 5, func(r *arena.Report, k int) {
			if k >= 2 {
				return
			}
			r.Base = random.Uint64N(1 << 26)
			for i := range r.Entries {
				if r.Entries[i].Mean = random.Uint64N(1 << 26); random.IntN(4) == 0 {
					r.Entries[i] = arena.Judged{Status: arena.Invalid}
				}
			}
		})
		for _, o := range r.Outcomes {
			if o.Gain != uint64(o.Account[6]-'0')*100 {
				t.Fatalf("%+v", o)
			}
		}
		if l.coins["judge0"]+l.coins["judge1"] != 0 || l.coins["judge4"] != 7 {
			t.Fatalf("%v", l.coins)
		}
	}
}

// An entry has the lower of its gains, and none of a model that is worse by one of both losses.
func TestLowerGain(t *testing.T) {
	base := arena.Losses{Exact: 5000, Adjusted: 4000}
	for want, entry := range map[int64]arena.Losses{
		100: {Exact: 4900, Adjusted: 3800}, 50: {Exact: 4800, Adjusted: 3950}, 0: {Exact: 5000, Adjusted: 3000},
		-70: {Exact: 4000, Adjusted: 4070},
	} {
		if got := base.Lower(entry); int64(got) != 5000-want {
			t.Errorf("%+v: %d", entry, got)
		}
	}
	worst := arena.Losses{Exact: 1, Adjusted: 64 * arena.Unit}
	if got := base.Lower(worst); got != 64*arena.Unit {
		t.Errorf("%d is no loss of a report", got)
	}
}

func TestAHiddenSetCostsTheBond(t *testing.T) {
	l := play(t, terms(), 3)
	r := l.round(func(string) (int64, bool) { return 1, true }, 5, func(r *arena.Report, _ int) {
		*r = arena.Report{Absent: true}
	})
	if r.Why != arena.Hidden || l.c.Phase != Over || l.c.Why != Hidden || l.coins["member1"] != 30 ||
		l.coins["host"] != -90 {
		t.Errorf("%+v %v", l.c, l.coins)
	}
}

func TestARoundWithoutModels(t *testing.T) {
	l := play(t, terms(), 3)
	r := l.round(func(string) (int64, bool) { return 0, false }, 0, nil)
	if r.Why != arena.Empty || l.c.Phase != Idle || l.c.Staked != 3*minStake*9/10 {
		t.Errorf("%+v %+v", r, l.c)
	}
	if c, _, p, err := l.c.Draw(8, nil, canon.Digest{}, l.c.Until+1); err != nil || c.Why != Stopped || len(p) != 1 {
		t.Errorf("%+v %v %v", c, p, err)
	}
}

func TestRefusals(t *testing.T) {
	l := play(t, terms(), 2)
	for name, err := range map[string]error{
		"host": func() error { _, _, err := l.c.Join(Member{}, "host", minStake); return err }(),
		"less": func() error { _, _, err := l.c.Join(Member{}, "x", 1); return err }(),
		"none": func() error { _, _, _, err := l.c.Leave(Member{}, nil); return err }(),
		"another": func() error {
			_, err := l.c.Begin("x", canon.Sum("m"), "http://x", canon.Sum("s"), 1)
			return err
		}(),
		"no model": func() error {
			_, err := l.c.Begin("host", canon.Digest{}, "http://x", canon.Sum("s"), 1)
			return err
		}(),
	} {
		want := map[string]error{"host": ErrParty, "less": ErrStake, "none": ErrMember, "another": ErrParty,
			"no model": ErrTerms}[name]
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := l.c
	c.Phase = Round
	if _, _, _, err := c.Leave(l.members["member0"], []string{"member0"}); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
}
