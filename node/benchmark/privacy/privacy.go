// Package privacy measures the parts of federated training that protect data: secure sums, noise and the accountant
// (docs/adr/0190-sums-of-masked-integers.md), and attacks on them: the search for images whose update was seen, for the
// examples that a model was trained on, and for data in the bytes of a job
// (docs/adr/0196-each-promise-of-privacy-has-an-attack.md); and encrypted data of training jobs. All clients are in one
// process. It is the engine of starling bench privacy.
package privacy

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/discrete"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/renyi"
	"github.com/starling-network/starling/exchange/secagg"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/privacy/alliance"
	"github.com/starling-network/starling/node/benchmark/privacy/factors"
	"github.com/starling-network/starling/node/benchmark/privacy/inversion"
	"github.com/starling-network/starling/node/benchmark/privacy/learner"
	"github.com/starling-network/starling/node/benchmark/privacy/price"
	"github.com/starling-network/starling/node/benchmark/privacy/sealed"
	"github.com/starling-network/starling/node/benchmark/privacy/traffic"
	"github.com/starling-network/starling/node/federated/sums"
)

// Options say what is measured.
type Options struct {
	Entries   int // of the vector of a client in the largest sum
	Samples   int // of the noise
	Images    int // of bare updates that are searched
	Together  int // steps of the search for all images of a sum; 0: there is none
	Members   learner.Size
	Curve     learner.Size
	Methods   learner.Size
	Adapters  factors.Size
	Committee alliance.Size
	Price     sums.Size
	Progress  func(string)
}

// Whole and Quick are the sizes of starling bench privacy.
var (
	Whole = Options{Entries: 1 << 20, Samples: 1_000_000, Images: inversion.Owners, Together: 30,
		Members:  learner.Size{Examples: 400, Rounds: 20, Models: 4},
		Curve:    learner.Size{Owners: 10, Examples: 800, Rounds: 60},
		Methods:  learner.Size{Owners: 10, Examples: 400, Rounds: 20},
		Adapters: factors.Size{Owners: 10, Rounds: 20, Base: 400}, Committee: alliance.Size{Rounds: 100},
		Price: sums.Size{Owners: 20, Gone: 6, Weights: 100_000}}
	Quick = Options{Entries: 10_000, Samples: 100_000, Images: 4,
		Members:  learner.Size{Examples: 400, Rounds: 20, Models: 1},
		Curve:    learner.Size{Owners: 3, Examples: 200, Rounds: 4},
		Methods:  learner.Size{Owners: 3, Examples: 100, Rounds: 2},
		Adapters: factors.Size{Owners: 3, Rounds: 2, Base: 10}, Committee: alliance.Size{Rounds: 30},
		Price: sums.Size{Owners: 5, Gone: 1, Weights: 20_000}}
)

// Sum is one secure sum.
type Sum struct {
	Clients   int     `json:"clients"`
	Entries   int     `json:"entries"`
	Dropouts  int     `json:"dropouts"`  // as many as the threshold allows
	Phase     string  `json:"phase"`     // in which they drop out
	Exact     bool    `json:"exact"`     // the sum is that of the survivors, to the bit
	Error     float64 `json:"error"`     // largest of an element of the mean, of the clipping norm
	Processor float64 `json:"processor"` // seconds of all clients and of the server
}

// Vector is a figure of the accountant, and the published one.
type Vector struct {
	Rate      float64 `json:"rate"` // with which a participant is drawn
	Noise     float64 `json:"noise"`
	Steps     float64 `json:"steps"`
	Delta     float64 `json:"delta"`
	Classic   float64 `json:"classic"` // epsilon by the conversion of Mironov
	Epsilon   float64 `json:"epsilon"` // by that of Canonne, Kamath and Steinke
	Deviation float64 `json:"deviation"`
}

// Report is the outcome.
type Report struct {
	Sums       []Sum              `json:"sums"`
	Vectors    []Vector           `json:"vectors"`
	Inversion  []inversion.Found  `json:"inversion"`
	Members    []learner.Attacked `json:"membership"`
	Curve      []learner.Point    `json:"curve"`
	Methods    []learner.Method   `json:"methods"`
	Adapters   []factors.Way      `json:"adapters"`
	Traffic    traffic.Seen       `json:"traffic"`
	Sealed     sealed.Cost        `json:"encrypted"` // a job whose data is encrypted
	Committees []alliance.Outcome `json:"committees"`
	Prices     []sums.Row         `json:"prices"`
	Answers    []price.Answer     `json:"answers"`
	Bars       []benchmark.Bar    `json:"bars"`
}

// Limits of the bars.
const (
	vectorError  = 1e-4
	sumSeconds   = 60
	recovered    = 20 // decibels of an image that a search has found
	unrecovered  = 10 // of one that it has not
	attacked     = 8  // epsilon of an example, at which membership is attacked
	unrecognised = 0.55
	aboveCentral = 0.03 // loss of adapters of owners above that of one owner of all data, relatively
	sealedPart   = 0.05 // of the processor time of a round
)

// Measure plays secure sums of 5, 20 and 100 clients, tests the noise and computes the vectors of the accountant.
func Measure(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Vectors: vectors()}
	wrong := 0.0
	for _, n := range []int{5, 20, 100} {
		for phase := range phases {
			o.Progress(fmt.Sprintf("a sum of %d clients that drop out %s", n, phases[phase]))
			entries := 1000
			if n == 100 && phase == 2 { // the most expensive: masks of those that drop out are recovered
				entries = o.Entries
			}
			s, err := play(ctx, n, phase, entries)
			if err != nil {
				return nil, err
			}
			if !s.Exact {
				wrong++
			}
			r.Sums = append(r.Sums, s)
		}
	}
	largest := slices.MaxFunc(r.Sums, func(a, b Sum) int { return a.Clients*a.Entries - b.Clients*b.Entries })
	worst := 0.0
	for _, v := range r.Vectors {
		worst = max(worst, v.Deviation)
	}
	o.Progress("noise")
	chi, limit, err := chiSquare(o.Samples)
	if err != nil {
		return nil, err
	}
	r.Bars = []benchmark.Bar{
		benchmark.AtMost("secure sums that differ from the plain sum of the survivors", wrong, 0),
		benchmark.AtMost(fmt.Sprintf("processor seconds of a sum of %d clients with %d entries, %d of whom drop out",
			largest.Clients, largest.Entries, largest.Dropouts), largest.Processor, sumSeconds),
		benchmark.AtMost(fmt.Sprintf("chi-square of %d samples of noise", o.Samples), chi, benchmark.Rounded(limit, 3)),
		{Name: "largest deviation of epsilon from published figures", Value: worst, Bar: vectorError,
			Holds: worst <= vectorError},
	}
	return r, errors.Join(r.learn(ctx, o), r.attack(ctx, o), r.committees(ctx, o), r.prices(ctx, o))
}

// learn adds to a report how well methods of owners learn.
func (r *Report) learn(ctx context.Context, o Options) (err error) {
	if r.Methods, err = learner.Methods(ctx, o.Methods, func(m learner.Method) {
		o.Progress(fmt.Sprintf("%d owners with shares of Dirichlet %g by method %s", o.Methods.Owners, m.Dirichlet, m.Name))
	}); err != nil {
		return err
	}
	if r.Adapters, err = factors.Measure(ctx, o.Adapters, o.Progress); err != nil {
		return err
	}
	turns := r.Adapters[1]
	r.Bars = append(r.Bars, benchmark.AtMost(fmt.Sprintf("loss of adapters of %d owners, whose factors take turns, above "+
		"that of one owner of all data, relatively", o.Adapters.Owners), benchmark.Rounded(turns.Above, 4), aboveCentral))
	return nil
}

// phases in which clients drop out: they do the duties of those before.
var phases = []string{"nowhere", "before they share secrets", "before they send a vector", "before they confirm",
	"before they open shares"}

// party is a client of a sum with its update.
type party struct {
	*secagg.Client
	update []*tensor.Tensor
	values []uint32 // on the grid
}

const clip = 1 // Euclidean norm of updates

// play plays one sum with as many dropouts in a phase as the threshold allows.
func play(ctx context.Context, n, phase, entries int) (Sum, error) {
	s := Sum{Clients: n, Entries: entries, Phase: phases[phase]}
	if phase > 0 {
		s.Dropouts = n - secagg.Threshold(n)
	}
	t := secagg.Terms{Cohort: max(secagg.MinCohort, n-s.Dropouts), Entries: entries + 1}
	_, _ = rand.Read(t.Session[:]) // never fails
	server, err := secagg.NewServer(t)
	if err != nil {
		return s, err
	}
	all := map[string]*party{}
	for i := range n {
		update := []*tensor.Tensor{tensor.New(tensor.Make(tensor.Float32, entries))}
		philox.NormalTo(update[0].F32(), 1, uint64(i))
		p, advert, err := newParty(t, update, clip, float64(i%4+1)/4)
		if err != nil {
			return s, err
		}
		if err := server.Advertise(advert); err != nil {
			return s, err
		}
		all[string(advert.Name)] = p
	}
	before, _ := benchmark.Usage()
	sum, of, err := rounds(ctx, server, all, s.Dropouts, phase)
	if err != nil {
		return s, err
	}
	after, _ := benchmark.Usage()
	s.Processor = benchmark.Rounded((after - before).Seconds(), 3)
	s.Exact, s.Error, err = compare(sum, of, entries)
	return s, err
}

// newParty is a client with drawn keys and an update.
func newParty(t secagg.Terms, update []*tensor.Tensor, clip, weight float64) (*party, secagg.Advert, error) {
	_, name, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, secagg.Advert{}, err
	}
	var seed prg.Key
	_, _ = rand.Read(seed[:]) // never fails
	c, advert, err := secagg.NewClient(t, name, seed)
	if err != nil {
		return nil, advert, err
	}
	p := &party{Client: c, update: update}
	p.values, err = fixedpoint.Encode(p.update, clip, weight)
	return p, advert, err
}

// rounds plays the phases of a sum. The first clients of the roster drop out in one of them.
func rounds(ctx context.Context, server *secagg.Server, all map[string]*party, gone, phase int) ([]uint32, []*party,
	error) {
	roster, err := server.CloseAdverts()
	if err != nil {
		return nil, nil, err
	}
	// each calls a function for those that are there in a phase
	each := func(now int, do func(i int, p *party) error) error {
		for i, a := range roster {
			if now >= phase && i < gone {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := do(i, all[string(a.Name)]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := each(1, func(i int, p *party) error {
		d, err := p.Share(roster)
		if err != nil {
			return err
		}
		return server.Deal(i, d)
	}); err != nil {
		return nil, nil, err
	}
	if err := server.CloseDeals(); err != nil {
		return nil, nil, err
	}
	var survivors []*party
	if err := each(2, func(i int, p *party) error {
		survivors = append(survivors, p)
		inbox, err := server.Inbox(i)
		if err != nil {
			return err
		}
		b, err := p.Mask(inbox, slices.Clone(p.values))
		if err != nil {
			return err
		}
		return server.Masked(i, b)
	}); err != nil {
		return nil, nil, err
	}
	sum, err := open(server, each)
	return sum, survivors, err
}

// open plays the last two phases.
func open(server *secagg.Server, each func(now int, do func(i int, p *party) error) error) ([]uint32, error) {
	indices, err := server.CloseMasked()
	if err != nil {
		return nil, err
	}
	if err := each(3, func(_ int, p *party) error {
		c, err := p.Confirm(indices)
		if err != nil {
			return err
		}
		return server.Confirm(c)
	}); err != nil {
		return nil, err
	}
	by, err := server.CloseConfirm()
	if err != nil {
		return nil, err
	}
	if err := each(4, func(i int, p *party) error {
		o, err := p.Open(by)
		if err != nil {
			return err
		}
		return server.Open(i, o)
	}); err != nil {
		return nil, err
	}
	return server.Sum()
}

// compare says whether a sum is that of the vectors of the survivors, and how far the mean is from that of their
// clipped updates.
func compare(sum []uint32, of []*party, entries int) (exact bool, worst float64, err error) {
	plain, want, weight := make([]uint32, entries+1), make([]float64, entries), 0.0
	for _, p := range of {
		w := float64(p.values[entries]) / fixedpoint.Unit
		weight += w
		square := 0.0
		for _, x := range p.update[0].F32() {
			square += float64(x) * float64(x)
		}
		for i, x := range p.update[0].F32() {
			plain[i] += p.values[i]
			want[i] += w * float64(x) / max(clip, math.Sqrt(square))
		}
		plain[entries] += p.values[entries]
	}
	mean, err := fixedpoint.Mean(sum, clip, []tensor.Shape{of[0].update[0].Shape})
	if err != nil {
		return false, 0, err
	}
	for i, x := range mean[0].F32() {
		worst = max(worst, math.Abs(float64(x)-want[i]/weight))
	}
	return slices.Equal(sum, plain), worst, nil
}

// vectors are figures of the accountant whose values others have published or computed: the first is in Abadi et al.
// 2016, the third in the tutorial of TensorFlow Privacy.
func vectors() []Vector {
	var all []Vector
	for _, v := range []struct{ rate, noise, steps, delta, classic, epsilon float64 }{
		{0.01, 4, 10000, 1e-5, 1.2586, 1.0355}, {0.01, 4, 40000, 1e-5, 2.5759, 2.2129},
		{256. / 60000, 1.1, 14100, 1e-5, 3.0133, 2.6007}, {0.01, 1, 1000, 1e-5, 2.5383, 2.1078},
		{1, 10, 100, 1e-5, 5.3026, 4.7527}, {0.02, 0.8, 500, 1e-6, 6.9143, 6.1645},
	} {
		l := renyi.Gaussian(v.rate, v.noise).Times(v.steps)
		got := Vector{Rate: v.rate, Noise: v.noise, Steps: v.steps, Delta: v.delta, Classic: l.Classic(v.delta),
			Epsilon: l.Epsilon(v.delta)}
		got.Deviation = max(math.Abs(got.Classic-v.classic), math.Abs(got.Epsilon-v.epsilon))
		all = append(all, got)
	}
	return all
}

const noiseScale = 10 // of the samples that are compared with the distribution

// chiSquare compares samples of the noise with their distribution, and returns the 0.9999 quantile of the statistic, by
// the approximation of Wilson and Hilferty.
func chiSquare(samples int) (chi, limit float64, err error) {
	var key prg.Key
	_, _ = rand.Read(key[:]) // never fails
	values := make([]uint32, samples)
	if err := discrete.Add(values, noiseScale, key); err != nil {
		return 0, 0, err
	}
	count := map[int32]float64{}
	for _, v := range values {
		count[int32(v)]++
	}
	const far = 20 * noiseScale
	weight := func(x int) float64 { return math.Exp(-float64(x*x) / (2 * noiseScale * noiseScale)) }
	total := 0.0
	for x := -far; x <= far; x++ {
		total += weight(x)
	}
	free := -1.0
	for x := -far; x <= far; x++ {
		if want := weight(x) / total * float64(samples); want >= 10 {
			d := count[int32(x)] - want
			chi, free = chi+d*d/want, free+1
		}
	}
	return chi, free * math.Pow(1-2/(9*free)+3.72*math.Sqrt(2/(9*free)), 3), nil
}
