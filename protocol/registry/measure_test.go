package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
)

// measuring plays a measurement up to where a checker is drawn.
func measuring(t *testing.T, results []canon.Digest, checkers ...string) Measurement {
	t.Helper()
	m, err := Ask("ann", 100, 10)
	if err != nil {
		t.Fatal(err)
	}
	params := DefaultParams()
	draw := among(checkers...)
	if m, _, _, _ = m.Tick(params, draw, canon.Sum("early"), 10, 5000); !m.Seed.IsZero() {
		t.Error("the program is drawn in the block that asks for it, whose beacon the participant may know")
	}
	if m, _, _, _ = m.Tick(params, draw, canon.Sum("seed"), 11, 6000); m.Seed.IsZero() {
		t.Fatal("no program")
	}
	if m, err = m.Answer(Root("ann", m.Seed, results), 15, 8000); err != nil {
		t.Fatal(err)
	}
	m, _, end, err := m.Tick(params, draw, canon.Sum("sample"), 16, 9000)
	if err != nil || end != nil {
		t.Fatalf("ended: %+v, %v", end, err)
	}
	return m
}

// among draws the first of these verifiers.
func among(ids ...string) Draw {
	return func(_ canon.Digest, n int, beside []string) (drawn []string, err error) {
		for _, id := range ids {
			if !slices.Contains(beside, id) && len(drawn) < n {
				drawn = append(drawn, id)
			}
		}
		return drawn, nil
	}
}

// sampled is the sealed result of an honest checker.
func sampled(m Measurement, by string, results []canon.Digest) canon.Digest {
	return m.Sample(by, []canon.Digest{results[m.Picks[0]], results[m.Picks[1]]})
}

func results() (all []canon.Digest) {
	for i := range Segments {
		all = append(all, canon.Sum("result", []byte{byte(i)}))
	}
	return all
}

func TestMeasurement(t *testing.T) {
	m := measuring(t, results(), "ann", "vic", "wim", "xia", "yan")
	if len(m.Checks) != Checkers || m.Owes("ann") || !m.Owes("vic") || m.Picks[0] == m.Picks[1] {
		t.Fatalf("%+v check %v", m.Checks, m.Picks)
	}
	if _, err := m.Check("ann", sampled(m, "ann", results()), 17); !errors.Is(err, ErrMeasure) {
		t.Errorf("the participant checks itself: %v", err)
	}
	rate := uint64(100 * Segments * StepFlops / 2) // in the 2 s between the blocks
	for _, c := range []struct {
		wrong int // checkers that say something else
		want  Outcome
	}{{0, Outcome{Rate: rate}}, {1, Outcome{Rate: rate}}, {2, Outcome{Why: WhyDisagree}}, {3, Outcome{Why: WhyDisagree}}} {
		at := m
		for i, by := range []string{"vic", "wim", "xia"} {
			if _, err := at.Open(results()); !errors.Is(err, ErrMeasure) {
				t.Errorf("opened before all have checked, so that a checker could copy: %v", err)
			}
			said := sampled(m, by, results())
			if i < c.wrong {
				said = canon.Sum("something else")
			}
			var err error
			if at, err = at.Check(by, said, 17); err != nil {
				t.Fatal(err)
			}
			if _, err := at.Check(by, said, 17); !errors.Is(err, ErrMeasure) {
				t.Errorf("%s checks twice: %v", by, err)
			}
		}
		if out, err := at.Open(results()); err != nil || out != c.want {
			t.Errorf("with %d wrong checkers: %+v, %v", c.wrong, out, err)
		}
		other := slices.Clone(results())
		other[3] = canon.Sum("made up later")
		if _, err := at.Open(other); !errors.Is(err, ErrMeasure) {
			t.Errorf("other results than the answer's: %v", err)
		}
	}
	if sampled(m, "vic", results()) == sampled(m, "wim", results()) {
		t.Error("what one checker says can be copied by another")
	}
}

// Every way to say nothing ends the measurement, or draws another checker.
func TestMeasurementEnds(t *testing.T) {
	params := DefaultParams()
	late := int64(100 + params.MeasureBlocks)
	asked := Measurement{ID: "ann", Steps: 1, Since: 100, Seed: canon.Sum("s")}
	answered := asked
	answered.Root = canon.Sum("r")
	with := func(checks ...Checked) Measurement {
		m := answered
		m.Picks, m.Checks = []uint32{1, 2}, checks
		return m
	}
	said := func(by string) Checked { return Checked{By: by, Sample: canon.Sum(by)} }
	vic := Checked{By: "vic"}
	for name, c := range map[string]struct {
		m          Measurement
		candidates []string
		height     int64
		silent     string
		checks     int
		why        string
	}{
		"no answer":       {m: asked, height: late + 1, why: WhyNoAnswer},
		"time to answer":  {m: asked, height: late},
		"no checker yet":  {m: answered, candidates: []string{"ann"}, height: 101},
		"no checker":      {m: answered, candidates: []string{"ann"}, height: late + 1, why: WhyNoChecker},
		"three of many":   {m: answered, candidates: []string{"a", "b", "c", "d"}, height: 101, checks: 3},
		"silent checker":  {m: with(vic), candidates: []string{"vic", "wim"}, height: late + 1, silent: "vic", checks: 1},
		"silent, no more": {m: with(vic), candidates: []string{"vic"}, height: late + 1, silent: "vic", why: WhyNoChecker},
		"one said, no more": {m: with(vic, said("wim")), candidates: []string{"vic"}, height: late + 1, silent: "vic",
			checks: 1, why: WhyNoChecker},
		"one said, another": {m: with(vic, said("wim")), candidates: []string{"vic", "xia"}, height: late + 1, silent: "vic",
			checks: 2},
		"two said, no more": {m: with(vic, said("wim"), said("xia")), height: late + 1, silent: "vic", checks: 2},
		"not opened":        {m: with(said("vic")), height: late + 1, checks: 1, why: WhyNotOpened},
	} {
		after, silent, end, err := c.m.Tick(params, among(c.candidates...), canon.Sum("b"), c.height, 0)
		why := ""
		if end != nil {
			why = end.Why
		}
		if err != nil || why != c.why || strings.Join(silent, " ") != c.silent || len(after.Checks) != c.checks {
			t.Errorf("%s: %q, silent %q, %+v, %v", name, why, silent, after, err)
		}
	}
}

func TestClasses(t *testing.T) {
	params := DefaultParams()
	for name, c := range map[string]struct {
		h     Hardware
		rate  uint64
		class Class
		ppm   uint32
	}{
		"not measured":           {Hardware{Kind: GPU, Memory: 80 * gib}, 0, Unrated, 0},
		"datacentre":             {Hardware{Kind: GPU, Memory: 80 * gib}, 20e12, Datacentre, 3_000_000},
		"declares a datacentre":  {Hardware{Kind: GPU, Memory: 80 * gib}, 100e9, Processor, 200_000},
		"professional":           {Hardware{Kind: GPU, Memory: 24 * gib}, 20e12, Professional, 1_500_000},
		"consumer":               {Hardware{Kind: GPU, Memory: 8 * gib}, 600e9, Consumer, 1_000_000},
		"apple":                  {Hardware{Kind: Apple, Memory: 16 * gib}, 200e9, AppleSilicon, 800_000},
		"processor":              {Hardware{Memory: 512 * gib}, 250e9, Processor, 500_000},
		"processor beyond a GPU": {Hardware{Memory: 512 * gib}, 5e12, Processor, 1_000_000},
	} {
		p := Participant{Hardware: c.h, Rate: c.rate}
		if got, ppm := p.Class(params), p.MultiplierPPM(params); got != c.class || ppm != c.ppm {
			t.Errorf("%s: %s %d, want %s %d", name, got, ppm, c.class, c.ppm)
		}
	}
	for c := Unrated; c <= Datacentre; c++ {
		if back, ok := ParseClass(c.String()); !ok || back != c {
			t.Errorf("class %d is called %q", c, c)
		}
	}
}

func TestTiers(t *testing.T) {
	params := DefaultParams()
	p := valid()
	p.Tier, p.Hardware, p.Stake = Silver, Hardware{Memory: 16 * gib, Upload: 50_000}, 50_000_000
	if _, err := Register(p, params, 1); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*Participant)
		want  error
	}{
		"memory":       {func(p *Participant) { p.Hardware.Memory-- }, ErrTier},
		"upload":       {func(p *Participant) { p.Hardware.Upload-- }, ErrTier},
		"stake":        {func(p *Participant) { p.Stake-- }, ErrStake},
		"unknown tier": {func(p *Participant) { p.Tier = 9 }, ErrInvalid},
	} {
		bad := p
		c.spoil(&bad)
		if _, err := Register(bad, params, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestUptime(t *testing.T) {
	params := Params{EpochBlocks: 100, BeatBlocks: 10}
	u := Uptime{From: 200}
	var err error
	for h := int64(200); h < 300; h += 10 {
		if h == 240 {
			continue
		}
		if u, err = u.Heartbeat(params, h+3); err != nil {
			t.Fatal(err)
		}
		if _, again := u.Heartbeat(params, h+9); !errors.Is(again, ErrBeat) {
			t.Errorf("twice in the window of %d: %v", h, again)
		}
	}
	if got := u.PPM(params, 299); got != 900_000 {
		t.Errorf("nine windows of ten: %d", got)
	}
	if got := u.Miss().Miss().PPM(params, 299); got != 700_000 {
		t.Errorf("two missed duties: %d", got)
	}
	if got := (Uptime{From: 295}).PPM(params, 299); got != million {
		t.Errorf("no whole window: %d", got)
	}
	if got := (Uptime{From: 255, Beats: 4}).PPM(params, 299); got != million {
		t.Errorf("from the middle of a window: %d", got)
	}
	if got := (Uptime{From: 200, Beats: 1, Missed: 7}).PPM(params, 299); got != 0 {
		t.Errorf("more missed than there: %d", got)
	}
	if e, ends := params.Epoch(299); e != 2 || !ends {
		t.Errorf("epoch %d, %v", e, ends)
	}
}

func TestCover(t *testing.T) {
	params := Params{CoverPPM: 100_000}
	for _, c := range []struct{ stake, leased, want uint64 }{{100, 0, 1000}, {100, 400, 600}, {100, 2000, 0},
		{1 << 63, 0, 1<<64 - 1}} {
		if got := (Participant{Stake: c.stake}).Collateral(params, c.leased); got != c.want {
			t.Errorf("stake %d, leased %d: %d, want %d", c.stake, c.leased, got, c.want)
		}
	}
}

// Measurements belong to the device: another device must be measured again, and a participant keeps its slashes and
// passed audits.
func TestRenew(t *testing.T) {
	old := valid()
	old.Since, old.Slashed, old.Passed, old.Rate, old.Quote = 5, 7, 9, 1000, Quote{canon.Sum("image"), 10}
	same := old.Renew(valid())
	if same.Since != 5 || same.Slashed != 7 || same.Passed != 9 || same.Rate != 1000 || !same.Attested() {
		t.Errorf("%+v", same)
	}
	kind, card := valid(), valid()
	kind.Hardware.Kind, card.Device = GPU, "another card"
	for _, next := range []Participant{kind, card} {
		if other := old.Renew(next); other.Rate != 0 || other.Attested() || other.Slashed != 7 {
			t.Errorf("another device: %+v", other)
		}
	}
}

func TestReports(t *testing.T) {
	var l Link
	var err error
	for _, more := range []Link{{Bytes: 1000, Millis: 8}, {Bytes: 1000, Millis: 8, RTT: 40}} {
		if l, err = l.Report(more, 1500-l.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	if l.Bytes != 1500 || l.Millis != 12 || l.Rate() != 1000 || l.RTT != 40 {
		t.Errorf("%+v, %d kbit/s", l, l.Rate())
	}
	if l, err = l.Report(Link{Bytes: 500}, 500); err != nil || l.Bytes != 2000 || l.Rate() != 1000 {
		t.Errorf("bytes that were not timed change the speed: %+v, %v", l, err)
	}
	if full, err := l.Report(Link{Bytes: 500, Millis: 1 << 40}, 0); err != nil || full != l {
		t.Errorf("beyond what was committed: %+v, %v", full, err)
	}
	if slow, err := (Link{}).Report(Link{Bytes: 1000, Millis: 1 << 40}, 1000); err != nil || slow.Rate() != 1 {
		t.Errorf("so slow that it counts for not measured: %+v, %v", slow, err)
	}
	for _, bad := range []Link{{Millis: MaxReport + 1}, {Bytes: MaxReport + 1, Millis: 1}, {RTT: MaxRTT + 1}} {
		if _, err := l.Report(bad, 1<<60); !errors.Is(err, ErrReport) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// measured is a link with a speed in kbit/s.
func measured(of, by string, rate uint64) Measured {
	return Measured{of, by, Link{Bytes: rate * 125, Timed: rate * 125, Millis: 1000}}
}

func TestSpeeds(t *testing.T) {
	got := Speeds([]Measured{measured("a", "x", 50), measured("b", "x", 90), measured("c", "x", 70),
		measured("a", "y", 20), {"b", "y", Link{Bytes: 1000}}})
	if want := "map[a:[{50 90} {20 0}] b:[{90 70}] c:[{70 90}]]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// Four peers share an upload of 1000 kbit/s, of which half must be delivered: 125 to each.
func TestThrottled(t *testing.T) {
	p := Participant{Tier: Bronze, Hardware: Hardware{Upload: 1000}}
	params := Params{Witnesses: 3}
	slow, fast, blind := Speed{124, 500}, Speed{125, 500}, Speed{100, 100}
	for name, c := range map[string]struct {
		speeds []Speed
		want   bool
	}{
		"nobody measured it":                  {nil, false},
		"too few":                             {[]Speed{slow, slow}, false},
		"all":                                 {[]Speed{slow, slow, slow, slow}, true},
		"most":                                {[]Speed{slow, fast, slow, slow}, true},
		"one accuses":                         {[]Speed{{1, 1 << 40}, fast, fast, fast}, false},
		"half accuse":                         {[]Speed{{1, 1 << 40}, {1, 1 << 40}, fast, fast}, false},
		"it shares what it promised":          {[]Speed{fast, fast, fast, fast}, false},
		"everything is slow for who measures": {[]Speed{blind, blind, slow, slow}, false},
		"one defends it":                      {[]Speed{slow, slow, slow, {1 << 40, 500}}, true},
	} {
		if got := p.Throttled(params, c.speeds); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (Participant{Hardware: Hardware{Upload: 1000}}).Throttled(params, []Speed{slow, slow, slow, slow}) {
		t.Error("who commits to nothing has promised nothing")
	}
	if (Participant{Tier: Bronze, Hardware: Hardware{Upload: 1 << 63}}).Throttled(params,
		[]Speed{{1 << 62, 1 << 63}, {1 << 62, 1 << 63}, {1 << 62, 1 << 63}}) {
		t.Error("a part of an upload overflows")
	}
}

// Half of the peers that measured a participant cannot make it slow if the others got their part.
func FuzzThrottled(f *testing.F) {
	f.Add(uint64(5000), uint8(3), []byte{0, 255, 1})
	f.Fuzz(func(t *testing.T, upload uint64, honest uint8, lies []byte) {
		upload %= 1 << 40
		lies = lies[:min(len(lies), int(honest))]
		part := upload/2/max(1, uint64(len(lies))+uint64(honest)) + 1
		var links []Measured
		for i, lie := range lies {
			by := fmt.Sprint("liar ", i)
			links = append(links, measured("a", by, 1+uint64(lie)), measured("b", by, 1<<40))
		}
		for i := range honest {
			links = append(links, measured("a", fmt.Sprint(i), part), measured("b", fmt.Sprint(i), 2*part))
		}
		p := Participant{Tier: Bronze, Hardware: Hardware{Upload: upload}}
		if p.Throttled(Params{Witnesses: 1}, Speeds(links)["a"]) {
			t.Fatalf("%d who lie and %d who do not find a peer slow", len(lies), honest)
		}
	})
}

func TestClusters(t *testing.T) {
	params := Params{ClusterRTT: 30, ClusterSize: 3, StickyPPM: 200_000}
	node := func(id string) Node { return Node{ID: id, Class: Consumer} }
	nodes := []Node{node("d"), node("a"), node("c"), node("b"), node("e"), {ID: "x", Class: Datacentre}}
	rtt := map[Pair]uint32{
		PairOf("a", "b"): 5, PairOf("c", "d"): 6, PairOf("b", "c"): 25, PairOf("a", "c"): 31, PairOf("a", "d"): 31,
		PairOf("b", "d"): 26,
		PairOf("e", "d"): 100, PairOf("x", "a"): 1,
	}
	got := Clusters(nodes, rtt, params)
	if want := "map[a:a b:a c:c d:c e:e x:x]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	for range 20 { // the order given does not matter
		slices.Reverse(nodes)
		if again := Clusters(nodes, rtt, params); fmt.Sprint(again) != fmt.Sprint(got) {
			t.Fatalf("%v, then %v", got, again)
		}
	}
	// A node between two clusters stays in its own while the other is not much closer.
	moving := func(cluster string, left, right uint32) string {
		n := node("m")
		n.Cluster = cluster
		l, r := node("l"), node("r")
		l.Cluster, r.Cluster = "l", "r"
		found := Clusters([]Node{l, r, n}, map[Pair]uint32{PairOf("l", "m"): left, PairOf("m", "r"): right}, params)
		if found["m"] == found["l"] {
			return "l"
		}
		return "r"
	}
	if moving("l", 10, 9) != "l" || moving("l", 10, 7) != "r" || moving("", 10, 9) != "r" {
		t.Error("hysteresis")
	}
	if found := Clusters([]Node{node("a"), node("b"), node("c"), node("d")}, map[Pair]uint32{
		PairOf("a", "b"): 1, PairOf("a", "c"): 1, PairOf("a", "d"): 1, PairOf("b", "c"): 1, PairOf("b", "d"): 1,
		PairOf("c", "d"): 1}, params); found["d"] == found["a"] {
		t.Errorf("larger than may be: %v", found)
	}
}

// An epoch in which nothing was measured, or too little, takes no cluster apart; what was measured does.
func TestClustersWithoutMeasurements(t *testing.T) {
	params := Params{ClusterRTT: 30, ClusterSize: 3, StickyPPM: 200_000}
	node := func(id, cluster string) Node { return Node{ID: id, Class: Consumer, Cluster: cluster} }
	nodes := []Node{node("a", "a"), node("b", "a"), node("c", "a"), node("d", "d"), node("e", ""), node("f", "")}
	for _, c := range []struct {
		name string
		rtt  map[Pair]uint32
		want string
	}{
		{"nothing", nil, "map[a:a b:a c:a d:d e:e f:f]"},
		{"some of one", map[Pair]uint32{PairOf("a", "b"): 20}, "map[a:a b:a c:a d:d e:e f:f]"},
		{"one is far", map[Pair]uint32{PairOf("a", "c"): 200, PairOf("b", "c"): 200}, "map[a:a b:a c:c d:d e:e f:f]"},
		{"one is close to another", map[Pair]uint32{PairOf("c", "d"): 5}, "map[a:a b:a c:c d:c e:e f:f]"},
	} {
		if got := fmt.Sprint(Clusters(nodes, c.rtt, params)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	nodes[1].Class = Datacentre
	if got := Clusters(nodes, nil, params); got["b"] != "b" || got["c"] != "a" {
		t.Errorf("one of another class: %v", got)
	}
}

// Two close nodes of one class are in one cluster only in one region and with similar uploads.
func TestClustersOfLikeLines(t *testing.T) {
	params := Params{ClusterRTT: 30, ClusterSize: 9, StickyPPM: 200_000, ClusterUpload: 4}
	for name, c := range map[string]struct {
		a, b Node
		one  bool
	}{
		"nothing known":                  {Node{}, Node{}, true},
		"one region":                     {Node{Region: "eu"}, Node{Region: "eu"}, true},
		"two regions":                    {Node{Region: "eu"}, Node{Region: "us"}, false},
		"one says nothing of its region": {Node{Region: "eu"}, Node{}, true},
		"lines alike":                    {Node{Upload: 100}, Node{Upload: 400}, true},
		"lines not alike":                {Node{Upload: 100}, Node{Upload: 401}, false},
		"one line unknown":               {Node{Upload: 100}, Node{}, true},
		"not alike, in one already":      {Node{Upload: 100, Cluster: "a"}, Node{Upload: 500, Cluster: "a"}, true},
		"not alike at all":               {Node{Upload: 100, Cluster: "a"}, Node{Upload: 501, Cluster: "a"}, false},
		"lines beyond all measure":       {Node{Upload: 1 << 60}, Node{Upload: 1 << 63}, false},
	} {
		c.a.ID, c.b.ID = "a", "b"
		found := Clusters([]Node{c.a, c.b}, map[Pair]uint32{PairOf("a", "b"): 5}, params)
		if (found["a"] == found["b"]) != c.one {
			t.Errorf("%s: %v", name, found)
		}
	}
	p := Participant{Hardware: Hardware{Upload: 1000}}
	if p.Bandwidth(nil) != 1000 || p.Bandwidth([]Speed{{Rate: 300}, {Rate: 200}}) != 500 ||
		p.Bandwidth([]Speed{{Rate: 3000}}) != 1000 || (Participant{}).Bandwidth([]Speed{{Rate: 7}}) != 7 {
		t.Error("what a participant gives")
	}
}

// Any two of a cluster are close, whatever was measured.
func FuzzClusters(f *testing.F) {
	f.Add([]byte{1, 5, 9, 30, 31, 200, 7, 7, 7, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		params := Params{ClusterRTT: 30, ClusterSize: 4, StickyPPM: 200_000}
		var nodes []Node
		for i := range 8 {
			nodes = append(nodes, Node{ID: string(rune('a' + i)), Class: Consumer})
		}
		rtt := map[Pair]uint32{}
		for i := range nodes {
			for j := range i {
				if k := i*(i-1)/2 + j; k < len(data) {
					rtt[PairOf(nodes[i].ID, nodes[j].ID)] = uint32(data[k])
				}
			}
		}
		found := Clusters(nodes, rtt, params)
		for a, in := range found {
			n := 0
			for b, other := range found {
				if in != other {
					continue
				}
				n++
				if ms := rtt[PairOf(a, b)]; a != b && (ms == 0 || ms > params.ClusterRTT) {
					t.Fatalf("%s and %s are %d ms apart in %v", a, b, ms, found)
				}
			}
			if n > int(params.ClusterSize) || found[in] != in {
				t.Fatalf("%v", found)
			}
		}
	})
}

func TestDefaultParamsGovern(t *testing.T) {
	if err := DefaultParams().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Params){
		"stake": func(p *Params) { p.WorkerStake = 0 }, "epoch": func(p *Params) { p.EpochBlocks = 7 },
		"part": func(p *Params) { p.DowntimePPM = million + 1 }, "rate": func(p *Params) { p.ProcessorRate = 0 },
		"tier":      func(p *Params) { p.Tiers = []TierRule{{Tier: 9}} },
		"class":     func(p *Params) { p.Classes = []ClassRule{{Class: Processor}} },
		"witnesses": func(p *Params) { p.Witnesses = 0 },
	} {
		p := DefaultParams()
		spoil(&p)
		if err := p.Validate(); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
