package federated

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"path/filepath"

	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/dpsgd"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/node/prepare"
)

// Record is what became of a round.
type Record struct {
	Round    uint32                  `json:"round"`
	Cohort   int                     `json:"cohort"` // owners whose updates are in the sum
	Sent     []string                `json:"sent"`   // names of owners that sent a vector, in hexadecimal, or may have
	Dropouts map[federated.Phase]int `json:"dropouts,omitempty"`
	Faults   []string                `json:"faults,omitempty"`
	Void     string                  `json:"void,omitempty"` // why there is no sum; "": there is one
	Loss     *float64                `json:"loss,omitempty"` // of the model after it, on the sample of the coordinator
	Measured map[string]float64      `json:"measured,omitempty"`
}

// String is a line for people.
func (r Record) String() string {
	s := fmt.Sprintf("round %d: %d owners", r.Round, r.Cohort)
	if r.Void != "" {
		s = fmt.Sprintf("round %d: no sum, because %s", r.Round, r.Void)
	}
	for _, p := range federated.Phases {
		if n := r.Dropouts[p]; n > 0 {
			s += fmt.Sprintf(", %d left before phase %s", n, p)
		}
	}
	if len(r.Faults) > 0 {
		s += fmt.Sprintf(", %d wrong messages", len(r.Faults))
	}
	if r.Loss != nil {
		s += fmt.Sprintf(", loss %.4f", *r.Loss)
	}
	return s
}

// record is that of the round under way. The caller holds the lock.
func (c *Coordinator) record(void string) Record {
	r := Record{Round: c.now.Round, Void: void, Faults: c.round.Faults, Dropouts: map[federated.Phase]int{}}
	if void == "" {
		r.Cohort = c.round.Cohort()
	}
	for p, n := range c.round.Dropouts {
		if n > 0 {
			r.Dropouts[p] = n
		}
	}
	for _, o := range c.state.Owners {
		if name, err := hex.DecodeString(o); err == nil && c.round.Answered(federated.Vectors, name) {
			r.Sent = append(r.Sent, o)
		}
	}
	return r
}

// Report is the outcome of a job.
type Report struct {
	Job         string                  `json:"job"`
	Name        string                  `json:"name"`
	Dir         string                  `json:"dir"`
	Model       string                  `json:"model"`  // digest of the weights
	Rounds      int                     `json:"rounds"` // with a sum
	Void        int                     `json:"void"`   // without one
	Owners      int                     `json:"owners"`
	MinCohort   int                     `json:"min_cohort"` // the smallest of a round
	Dropouts    map[federated.Phase]int `json:"dropouts"`
	Faults      int                     `json:"faults"`
	Epsilon     *float64                `json:"epsilon"` // of all data of an owner; null: no noise
	Delta       float64                 `json:"delta"`
	Example     *Example                `json:"example"` // null: no noise
	FirstLoss   *float64                `json:"first_loss"`
	FinalLoss   *float64                `json:"final_loss"`
	Measured    map[string]float64      `json:"measured,omitempty"`
	Assumptions []string                `json:"assumptions"`
}

// Example is what the updates of an owner say about one of its examples.
type Example struct {
	Epsilon float64 `json:"epsilon"` // of an owner with as few examples as may take part
	Delta   float64 `json:"delta"`
	Rate    float64 `json:"rate"`  // with which an example is in a step, at most
	Steps   uint32  `json:"steps"` // of an owner
}

// evaluateFirst measures the model before the first round.
func (c *Coordinator) evaluateFirst() error {
	var first struct {
		Loss *float64 `json:"loss"`
	}
	path := filepath.Join(c.opt.Dir, fileFirst)
	if folder.ReadJSON(path, &first) == nil {
		return nil
	}
	var err error
	if first.Loss, _, err = measured.Evaluate(c.b, c.eval, c.model); err != nil {
		return err
	}
	return folder.WriteJSON(path, first)
}

func (c *Coordinator) report() *Report {
	f := c.b.Job.Federated
	model := WeightsDigest(EncodeWeights(c.model.Params)).String()
	r := &Report{Job: c.id.String(), Name: c.b.Job.Name, Dir: c.opt.Dir, Model: model, Owners: len(c.state.Owners),
		Delta: f.Noise.Delta, Dropouts: map[federated.Phase]int{}}
	var first struct {
		Loss *float64 `json:"loss"`
	}
	if folder.ReadJSON(filepath.Join(c.opt.Dir, fileFirst), &first) == nil {
		r.FirstLoss = first.Loss
	}
	t := &c.tally
	r.Rounds, r.Void, r.Faults, r.MinCohort = t.sums, t.void, t.faults, t.cohort
	r.FinalLoss, r.Measured = t.loss, t.measured
	maps.Copy(r.Dropouts, t.dropouts)
	most := t.most()
	r.Epsilon, r.Example = Privacy(c.b, most)
	r.Assumptions = append(assumptions(f.MinCohort, f.Noise.Multiplier > 0, most), exampleAssumptions(f.ExampleNoise,
		r.Example)...)
	if f.Updates == owners.Encrypted {
		r.Assumptions = append(r.Assumptions, "Vectors are ciphertexts, whose keys are added under masks. That no vector "+
			"is disclosed rests on the hardness of learning with errors over rings, and on the assumptions about masks.")
	}
	return r
}

// Privacy is what the updates of an owner that sends one in a number of rounds say about all its data, and about one of
// its examples; nil: there is no noise for it.
func Privacy(b *prepare.CompiledJob, rounds uint32) (epsilon *float64, x *Example) {
	f := b.Job.Federated
	use := federated.Spent{Noise: f.Noise.Multiplier, Rounds: rounds}
	if e := federated.Epsilon(federated.OfOwner, f.Noise.Delta, use); !math.IsInf(e, 0) {
		epsilon = &e
	}
	if n := f.ExampleNoise; n.On() {
		use.ExampleNoise, use.Steps = n.Multiplier, b.Spec.Steps
		use.Rate = dpsgd.Terms{Lot: float64(b.Job.WorkerBatch())}.Rate(n.MinExamples)
		x = &Example{Epsilon: federated.Epsilon(federated.OfExample, n.Delta, use), Delta: n.Delta, Rate: use.Rate,
			Steps: rounds * use.Steps}
	}
	return epsilon, x
}

// assumptions are those under which the figures of a report hold.
func assumptions(cohort int, noise bool, most uint32) []string {
	all := []string{fmt.Sprintf("At most a third of the owners of a round lie together with the coordinator: it learns "+
		"sums of more than two thirds of them, at least %d.", cohort),
		"An owner that gives no list of known owners trusts that the coordinator invents none.",
		"An owner that changes its program sends any update: clipping binds honest programs only."}
	if !noise {
		return append(all, "There is no noise for owners: the sums, and the model, may tell whether an owner took part.")
	}
	return append(all,
		fmt.Sprintf("Epsilon and delta are for all data of one owner against none, over the %d rounds in which an owner "+
			"sent a vector at most. Other jobs on the same data add to it: the ledger of the owner counts them.", most),
		"More than two thirds of the owners of a round, less a third, add their noise.",
		"The sum of their discrete Gaussian noises is counted as one Gaussian of the same variance.",
		"No amplification by sampling is counted, because the coordinator sees who takes part.")
}

// exampleAssumptions are those under which the epsilon of an example holds.
func exampleAssumptions(n owners.ExampleNoise, x *Example) []string {
	if x == nil {
		return []string{"There is no noise for examples: an update, the sums and the model may repeat single examples."}
	}
	return []string{
		fmt.Sprintf("Epsilon and delta of an example are for one row of the data of an owner against none, over the %d "+
			"steps of an owner with at least %d examples, of whom each is in a step with a probability of at most %.4g. A "+
			"person of whom there are several rows is protected less.", x.Steps, n.MinExamples, x.Rate),
		"They hold against all that see updates, the coordinator too, with masks or without, if the owner's program is " +
			"not changed: an owner adds its noise by itself.",
		"Only the owner knows which examples are in a step. How long a step takes tells how many; that is not counted.",
		"The number of examples, and the settings that owners chose after earlier runs on the same data, are not counted."}
}

// export writes the model as a folder that Hugging Face tools load.
func (c *Coordinator) export() error { return Export(c.b, c.model, c.opt.Dir) }

// Export writes the model of a checkpoint as such a folder.
func Export(b *prepare.CompiledJob, c *train.Checkpoint, dir string) error {
	texts, err := b.Leaves()
	if err != nil {
		return err
	}
	files, err := prepare.ExportModel(b, c, 0, texts)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := folder.WriteFileBy(filepath.Join(dir, f.Name), f.Write); err != nil {
			return err
		}
	}
	return nil
}
