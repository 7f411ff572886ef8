package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/data/labelled"
	"github.com/starling-network/starling/compute/data/paired"
)

// Tasks: what the model is trained to do.
const (
	TaskLanguage = "language" // to continue text
	TaskSFT      = "sft"      // to answer as the examples do: their answers alone are predicted
	TaskDPO      = "dpo"      // to give the preferred one of two answers more probability than the other
	TaskGRPO     = "grpo"     // to answer prompts, from the rewards of its own answers
	TaskReward   = "reward"   // to give the preferred one of two answers the higher score
	TaskClassify = "classify" // to name the class of an image or of a text
	TaskGraph    = "graph"    // to name the class of a node of a graph
	TaskEmbed    = "embed"    // to give texts that belong together vectors that are close
	// to estimate the noise in images, so that images can be drawn out of noise
	TaskDiffusion = "diffusion"
)

// Images is the format of files that are images, each in a folder that names its class.
const Images = "image"

// DPO holds the parameter of direct preference optimisation (Rafailov et al. 2023).
type DPO struct {
	Beta float64 `job:"beta" in:"(0,1000]"` // how closely the model is held to the base model
}

// Rollout says how answers are drawn in reinforcement learning.
type Rollout struct {
	Group       int     `job:"group" in:"[2,1024]"`         // answers to each prompt
	MaxTokens   int     `job:"max_tokens" in:"[1,4096]"`    // of an answer
	Temperature float64 `job:"temperature" in:"[0.01,100]"` // of the distribution that tokens are drawn from
	TopP        float64 `job:"top_p" in:"(0,1]"`            // share of the probability that they are drawn from
	KL          float64 `job:"kl" in:"[0,100]"`             // weight of the divergence from the base model
	// by how many rounds the policy of the answers that a round learns from is older, at most; 0: units that learn draw
	// their answers by themselves, with their weights of each step
	Staleness int `job:"staleness" in:"[0,4]"`
	// how the tokens of answers count that another policy drew; without it they are clipped
	Correction string `job:"correction" one:"clipped tapered"`
	// workers besides those of strategy.workers: seats for machines that offer to draw alone, or else for others
	Generators int `job:"generators" in:"[0,1000]"`
	// whether each worker of strategy.workers trains a model of its own, which learns from answers of the others, too
	Sharing string `job:"sharing" one:"none swarm"`
	Own     int    `job:"own" in:"[1,4096]"`   // of a swarm: prompts that each model draws answers to in a step
	Shared  int    `job:"shared" in:"[0,256]"` // and groups of answers of the others that it learns from, too
	// a game: how many texts each of the players of a prompt, who are as many as group, draws
	Stages int `job:"stages" in:"[1,3]"`
	Reads  int `job:"reads" in:"[1,16]"` // and of how many players one reads the texts of earlier stages
	// whose answers the players read: of a swarm those of other models, or those of the model that plays
	Critics string `job:"critics" one:"own others"`
	// a text that is one token, with which an answer ends that rules reward
	Stop string `job:"stop"`
}

// Swarm reports whether each worker trains a model of its own.
func (r Rollout) Swarm() bool { return r.Sharing == SwarmSharing }

// Apart reports whether answers are drawn by other units than those that learn from them.
func (r Rollout) Apart() bool { return r.Staleness > 0 || r.Swarm() }

// Game reports whether texts of earlier stages are read.
func (r Rollout) Game() bool { return r.Stages > 1 }

// Across reports whether the players of a swarm read answers of other models.
func (r Rollout) Across() bool { return r.Critics == "others" }

// Room is how many tokens of a sequence are those of texts of earlier stages.
func (r Rollout) Room() int { return (r.Stages - 1) * r.Reads * r.MaxTokens }

// usualReads is the default of Rollout.Reads in a game, where there are as many players.
const usualReads = 2

// SwarmSharing is the value of Rollout.Sharing of a swarm.
const SwarmSharing = "swarm"

// SAPO's best numbers of groups that a model of a swarm learns from in a step (Amico et al. 2025, section 5).
const bestOwn, bestShared = 4, 4

// deriveSwarm sets the keys of a swarm. Its models move by the updates of their units, as one does in FedAvg.
func (j *Spec) deriveSwarm(given func(path string) bool) {
	r, t := &j.Rollout, &j.Training
	if !r.Swarm() {
		return
	}
	if !given("strategy.method") {
		j.Strategy.Method = "fedavg"
	}
	if !given("strategy.verification.screen") {
		j.Strategy.Verification.Screen = "off" // updates of different models are not alike
	}
	workers := max(1, j.Strategy.Workers.Target)
	switch {
	case given("rollout.own"):
	case t.GlobalBatchSize > 0:
		r.Own = t.GlobalBatchSize / workers
	default:
		r.Own = bestOwn
	}
	if t.GlobalBatchSize == 0 {
		t.GlobalBatchSize = r.Own * workers
	}
	if !given("rollout.shared") {
		r.Shared = bestShared
	}
}

// Graph says how the graph of task: graph is read.
type Graph struct {
	Directed bool `job:"directed"` // an edge leads from its source to its target alone
}

// Embed holds the parameter of the contrastive loss of task: embed.
type Embed struct {
	Temperature float64 `job:"temperature" in:"[0.001,100]"` // what cosines are divided by
}

// Diffusion holds the parameter of task: diffusion (Ho et al. 2020).
type Diffusion struct {
	Timesteps int `job:"timesteps" in:"[50,4000]"` // from an image to noise
}

// ReadsText reports whether the model of the task is a language model that continues or answers text.
func (j Spec) ReadsText() bool {
	return j.Task != TaskClassify && j.Task != TaskGraph && j.Task != TaskEmbed && j.Task != TaskDiffusion &&
		j.Task != TaskReward
}

// EncodesText reports whether the network of the job is a language model without its output layer: its examples are
// texts, and it classifies them, scores them or gives them vectors.
func (j Spec) EncodesText() bool {
	return j.ClassifiesText() || j.Task == TaskEmbed || j.Task == TaskReward
}

// ClassifiesText reports whether the job names the classes of texts: its network is a language model under a layer that
// does.
func (j Spec) ClassifiesText() bool {
	m, others := j.Model, []string{"mlp", "cnn", "gcn", "sage"}
	return j.Task == TaskClassify && m.Architecture+m.BaseModel != "" && !slices.Contains(others, m.Architecture)
}

// AnswersExamples reports whether the data of the task are prompts with answers, or pairs of answers.
func (j Spec) AnswersExamples() bool {
	return j.Task == TaskSFT || j.Task == TaskDPO || j.Task == TaskGRPO || j.Task == TaskReward
}

// ExampleTokens is how many tokens an example of training has, where it is text: a sequence, or two.
func (j Spec) ExampleTokens() int {
	if j.Task == TaskDPO || j.Task == TaskReward {
		return 2 * j.SequenceLen
	}
	return j.SequenceLen
}

// closeRate is the learning rate of training on preferences and rewards unless the file gives one: a small fraction of
// that of other training, as the model is to stay close to the one that it begins as.
const closeRate = 1e-5

// usualTemperature is the default of embed.temperature: 1/20, as in MultipleNegativesRankingLoss of
// sentence-transformers.
const usualTemperature = 0.05

// usualTimesteps is the default of diffusion.timesteps: that of Ho et al. 2020.
const usualTimesteps = 1000

// mostDrawn is the default of rollout.max_tokens, where sequence_len has room for twice as many: a step has operators
// for each token, and models of about twelve layers have enough for this number.
const mostDrawn = 32

// deriveTask fills in what the task settles of the data and the training, unless the file says so.
func (j *Spec) deriveTask(given func(path string) bool) {
	if j.Eval.Tasks == nil {
		j.Eval.Tasks = []string{j.Measurement()}
	}
	if !j.ReadsText() {
		for i := range j.Datasets {
			d := &j.Datasets[i]
			if !given(fmt.Sprintf("datasets.%d.format", i)) {
				d.Format = j.formatOf(d.Path)
			}
			if j.ClassifiesText() && d.LabelField == "" {
				d.LabelField = labelled.DefaultLabel
			}
			if j.Task == TaskEmbed {
				if d.PositiveField == "" {
					d.PositiveField = paired.DefaultPositive
				}
				if !given(fmt.Sprintf("datasets.%d.field", i)) {
					d.Field = paired.DefaultAnchor
				}
			}
		}
	}
	if j.Task == TaskDiffusion && j.Diffusion.Timesteps == 0 {
		j.Diffusion.Timesteps = usualTimesteps
	}
	if j.Task == TaskEmbed && j.Embed.Temperature == 0 {
		j.Embed.Temperature = usualTemperature
	}
	if !j.AnswersExamples() {
		return
	}
	if !given("training.train_on_inputs") {
		j.Training.TrainOnInputs = false
	}
	if !given("sample_packing") {
		j.SamplePacking = false
	}
	if (j.Task == TaskDPO || j.Task == TaskGRPO) && !given("training.learning_rate") {
		j.Training.LearningRate = closeRate
	}
	if r := &j.Rollout; r.Game() && r.Reads == 0 {
		r.Reads = min(usualReads, r.Group)
	}
	if r := &j.Rollout; j.Task == TaskGRPO && r.MaxTokens == 0 {
		r.MaxTokens = max(1, min(mostDrawn, j.SequenceLen/(2+(r.Stages-1)*r.Reads)))
	}
	for i := range j.Datasets {
		d, at := &j.Datasets[i], fmt.Sprintf("datasets.%d.", i)
		if !given(at + "format") {
			d.Format = "jsonl"
		}
		if !given(at + "field") {
			d.Field = FieldChats
		}
	}
}

// formatOf is the format of the files of a path, where these have classes or are of a graph.
func (j *Spec) formatOf(path string) string {
	switch end := strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst"); {
	case j.Task == TaskClassify && !j.ClassifiesText() || j.Task == TaskDiffusion:
		return Images
	case strings.HasSuffix(end, ".csv"):
		return "csv"
	}
	return "jsonl"
}

// PredictsText reports whether the loss of the task is that of predicting text, as bits a byte and perplexity are.
func (j Spec) PredictsText() bool { return j.Task == TaskLanguage || j.Task == TaskSFT }

// Measurement is the measurement that an evaluation of the task makes.
func (j Spec) Measurement() string {
	switch {
	case j.Task == TaskEmbed:
		return Recall
	case j.Task == TaskDiffusion:
		return Denoising
	case j.Task == TaskReward:
		return Preference
	case !j.ReadsText():
		return Accuracy
	case j.PredictsText():
		return Perplexity
	case j.Task == TaskGRPO:
		return Rewarded
	}
	return Preference
}

// Measurements of an evaluation.
const (
	Perplexity = "perplexity" // of held-out text
	Accuracy   = "accuracy"   // the share of held-out examples whose class has the highest score
	Recall     = "recall"     // the shares of held-out pairs whose positive is the closest to its anchor, or among ten
	Denoising  = "denoising"  // the mean square of the error of the estimated noise in held-out images
	Rewarded   = "reward"     // the mean reward of the most likely answers to held-out prompts, and how many are right
	// the share of held-out pairs whose preferred answer gained, or has the higher score, and by how much
	Preference = "preference"
)
