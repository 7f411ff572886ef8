// Package spec holds the keys of a job file as structs, and is the only place that knows a default. Package strict
// explains the tags, which are the grammar of the file. Package spec reads no file, and does not know whether two keys
// fit together.
package spec

import (
	"math"

	"github.com/starling-network/starling/client/job/machine"
	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/client/job/stores"
)

// Spec is a training job as its author means it: every key of the file, with defaults filled in.
type Spec struct {
	APIVersion    string            `job:"apiVersion,required" one:"starling/v1"`
	Kind          string            `job:"kind,required" one:"TrainingJob FederatedJob"`
	Name          string            `job:"name"`         // default: the file's name without its extension
	Labels        map[string]string `job:"labels,local"` // for the author; no result depends on them
	Seed          uint64            `job:"seed"`         // of every random choice of the training
	Task          string            `job:"task" one:"language sft dpo grpo reward classify graph embed diffusion"`
	DPO           DPO               `job:"dpo"`
	Rollout       Rollout           `job:"rollout"`
	Reward        Reward            `job:"reward"`
	Graph         Graph             `job:"graph"`
	Embed         Embed             `job:"embed"`
	Diffusion     Diffusion         `job:"diffusion"`
	Model         Model             `job:"model,required"`
	Datasets      []Dataset         `job:"datasets,required" size:"[1,1000]" example:"[{path: \"./data/*.txt\"}]"`
	ValSetSize    float64           `job:"val_set_size" in:"[0,0.5]"`    // fraction of the tokens held out for eval
	SequenceLen   int               `job:"sequence_len" in:"[1,131072]"` // tokens of one training example
	SamplePacking bool              `job:"sample_packing"`               // examples are windows over the joined documents
	// shards of the data whose examples are mixed at a time, so that a unit reads few; 0: all
	ShuffleShards int `job:"shuffle_shards" in:"[0,65536]"`
	// the shards of the data are encrypted, and a worker or verifier gets the keys of those that its unit reads
	EncryptData bool     `job:"encrypt_data"`
	Training    Training `job:"training,required"`
	// what takes the steps of a unit: the kernels, or the PyTorch of the worker's owner
	Executor   string           `job:"executor" one:"builtin torch"`
	Strategy   Strategy         `job:"strategy"`
	Parallel   Parallel         `job:"parallel"`
	Resources  Resources        `job:"resources"`
	Budget     Budget           `job:"budget"`
	Checkpoint Checkpoint       `job:"checkpoint"`
	Eval       Eval             `job:"eval"`
	Tracking   Tracking         `job:"tracking,local"`
	Output     Output           `job:"output"`
	Notify     Notify           `job:"notify,null,local"`
	Federated  owners.Federated `job:"federated"`
	Experts    []Expert         `job:"experts,local" size:"[2,16]"`
	Expert     string           `job:"expert,local"` // the name of that of Experts which this job trains
}

// Expert is one of several models that are trained apart and read texts together, each by a job of its own.
type Expert struct {
	Name  string         `job:"name,required"`
	Prior float64        `job:"prior" in:"(0,1000]"` // how likely a text is of its domain, in proportion to the others
	Set   map[string]any `job:"set"`                 // sections of the file with the keys that are other in this job
}

// Model says what is trained.
type Model struct {
	// folder of a model to start from; empty: from scratch
	BaseModel string `job:"base_model,null,local"`
	// of a model from scratch, or to hold against the base model's
	Architecture string `job:"architecture" one:"gpt2 llama mlp cnn gcn sage"`
	// Hugging Face config.json keys, for compute/model to check
	Config    map[string]any `job:"config"`
	Tokenizer Tokenizer      `job:"tokenizer"`
	Adapter   *Adapter       `job:"adapter"`
	// the weights under an adapter are kept in 8 or 4 bits, with a scale for each block of 64
	LoadIn8bit bool `job:"load_in_8bit"`
	LoadIn4bit bool `job:"load_in_4bit"`
}

// Adapter trains a small addition to a base model in place of the model.
type Adapter struct {
	LoRA *LoRA `job:"lora"`
}

// LoRA holds the parameters of a low-rank adapter (Hu et al., 2021).
type LoRA struct {
	R             int      `job:"r" in:"[1,65536]"`
	Alpha         float64  `job:"alpha" in:"(0,inf)"`
	Dropout       float64  `job:"dropout" in:"[0,1)"`
	TargetModules []string `job:"target_modules"` // last parts of names of layers; none: every linear layer but the output
}

// Dataset is one source of training text, or of the tokens of one (llmc-bin, nanogpt-bin), or of images, or of a graph.
// Files whose names end in .gz or .zst are unpacked, but for parquet and images.
type Dataset struct {
	// glob, relative to the folder of the job file (** spans folders), or the address of a file on a web server
	Path   string `job:"path,required,local"`
	SHA256 string `job:"sha256,local"` // of that file, in hexadecimal; "": any, recorded when it is downloaded
	Format string `job:"format" one:"text jsonl csv parquet llmc-bin nanogpt-bin image"`
	Field  string `job:"field"` // of a jsonl object, or column of a csv or parquet file
	// the same for the name of the class of a text, where texts are classified; default: label
	LabelField string `job:"label_field"`
	// the same for the text that belongs to that of field, where texts get vectors; default: positive
	PositiveField string `job:"positive_field"`
	// fields of a jsonl object that rules of rewards compare with, in place of the completion
	RewardFields []string `job:"reward_fields" size:"[1,16]"`
	Split        string   `job:"split" one:"train"`
	Weight       float64  `job:"weight" in:"(0,inf)"`
}

// Training is the inner loop. Steps are inner steps; batch sizes count sequences.
type Training struct {
	MaxSteps             int           `job:"max_steps" in:"[1,1000000000]"`
	NumEpochs            float64       `job:"num_epochs,null" in:"(0,inf)"`
	GlobalBatchSize      int           `job:"global_batch_size" in:"[1,1048576]"` // sequences of one step over all workers
	MicroBatchSize       quantity.Auto `job:"micro_batch_size"`
	GradientAccumulation quantity.Auto `job:"gradient_accumulation_steps"`
	LearningRate         float64       `job:"learning_rate" in:"(0,10]"`
	LRScheduler          string        `job:"lr_scheduler" one:"cosine linear constant wsd"`
	LRDecayRatio         float64       `job:"lr_decay_ratio" in:"(0,1]"` // of wsd
	WarmupSteps          int           `job:"warmup_steps" in:"[0,1000000000]"`
	WarmupRatio          float64       `job:"warmup_ratio" in:"[0,1)"`
	MinLRRatio           float64       `job:"min_lr_ratio" in:"[0,1]"`
	Optimizer            Optimizer     `job:"optimizer"`
	MaxGradNorm          float64       `job:"max_grad_norm" in:"[0,inf)"` // 0: no clipping
	Precision            string        `job:"precision" one:"fp32 bf16 exact15 exact8"`
	// what two executions of a work unit have in common: every bit, or a tolerance
	Numerics string  `job:"numerics" one:"exact-f32 tolerant"`
	Dropout  float64 `job:"dropout" in:"[0,1)"` // of the embeddings and of the outputs of sublayers, in training
	// whether the loss is over all of a conversation, or over what the assistant says in it
	TrainOnInputs bool `job:"train_on_inputs"`
	// what the backward pass needs is computed a second time, in less memory and with the same bits
	GradientCheckpointing bool `job:"gradient_checkpointing"`
}

// Optimizer is the inner optimizer.
type Optimizer struct {
	Name        string    `job:"name" one:"adamw sgd lion adafactor"`
	WeightDecay float64   `job:"weight_decay" in:"[0,1]"`
	Betas       []float64 `job:"betas" in:"[0,1)" size:"[2,2]"` // not of sgd
	Eps         float64   `job:"eps" in:"(0,1]"`                // of adamw
	Momentum    float64   `job:"momentum" in:"[0,1)"`           // of sgd
	Nesterov    bool      `job:"nesterov"`                      // of sgd
	State       string    `job:"state" one:"fp32 bf16 int8"`    // what it remembers is kept in
}

// Remembers reports whether the optimizer has a state besides the weights.
func (o Optimizer) Remembers() bool { return o.Name != SGD || o.Momentum > 0 }

const AdamW, SGD, Lion, Adafactor = "adamw", "sgd", "lion", "adafactor" // inner optimizers

// Words lists the methods.
func (Strategy) Words() map[string]string {
	return map[string]string{"method": "diloco fedavg fedprox fedadam fedyogi sparseloco allreduce demo sparta " +
		"sparta_diloco streaming_diloco gossip async_diloco"}
}

// Strategy is the distributed part: how the work of many workers becomes one checkpoint.
type Strategy struct {
	// what the keys below are if they are not given
	Method string `job:"method"`
	// inner steps of one round
	SyncSteps int `job:"sync_steps" in:"[1,65536]"`
	// pulls a unit back to where it began (FedProx, section 3)
	ProximalMu float64 `job:"proximal_mu" in:"[0,1000]"`
	// in how many rounds in a row the moments of the inner optimizer last; 1: they begin with zero in every unit;
	// default: 8, or as many as the other carried state lasts
	OptimizerStateRounds int            `job:"optimizer_state_rounds" old:"moment_rounds" in:"[1,256]"`
	OuterOptimizer       OuterOptimizer `job:"outer_optimizer"`
	Compression          Compression    `job:"compression"`
	Replicas             Replicas       `job:"replicas"`
	Aggregation          Aggregation    `job:"aggregation"`
	Workers              Workers        `job:"workers"`
	// in which a worker has to commit to a unit at first; later deadlines follow the observed times
	RoundTimeout quantity.Duration `job:"round_timeout" in:"[1,604800]"`
	Verification Verification      `job:"verification"`
}

// OuterOptimizer moves the checkpoint by the aggregated pseudo-gradient (DiLoCo, section 3).
type OuterOptimizer struct {
	// with adamw and signsgd, units are gradients, and these take the steps; with gossip, replicas that average in pairs
	Name string `job:"name" one:"nesterov sgd adam yogi adamw signsgd gossip" oldone:"sign=signsgd pairs=gossip"`
	// of adamw and signsgd, the factor of training.learning_rate
	LR       float64   `job:"lr" in:"(0,10]"`
	Momentum float64   `job:"momentum" in:"[0,1)"`           // of nesterov and gossip
	Betas    []float64 `job:"betas" in:"[0,1)" size:"[2,2]"` // of adam and yogi
	Eps      float64   `job:"eps" in:"(0,1]"`                // of adam and yogi, tau in their paper
}

// Adaptive reports whether the optimizer keeps two moments.
func (o OuterOptimizer) Adaptive() bool { return o.Name == "adam" || o.Name == "yogi" }

// Gradients reports whether a round is one step of the optimizer, and its units are gradients.
func (o OuterOptimizer) Gradients() bool { return o.Name == "adamw" || o.Name == "signsgd" }

// Compression is how an update is made small before it is sent.
type Compression struct {
	// fraction of every 4096 elements that is sent, the largest; 0: all
	TopKRatio float64 `job:"topk_ratio,null" in:"[0,1]"`
	Quantize  string  `job:"quantize" one:"none fp16 bf16 int8 fp4 int2 sign"` // of the elements sent
	// what the elements become before that: dct is the frequencies of 64 x 64 of them
	Transform string `job:"transform" one:"none dct"`
	// what is left out of the update of a unit is added to its next
	ErrorFeedback bool `job:"error_feedback,null"`

	// number of rounds in a row through which the residual is carried; the first begins without one. A worker that
	// takes over a unit, or a verifier that audits it, and cannot get the state from a peer, executes the unit again
	// for that many rounds at most. Default: 32, or optimizer_state_rounds.
	FeedbackRounds int `job:"feedback_rounds" in:"[2,256]"`
}

// Replicas are models that units train from their own last state, and not from the checkpoint alone. With sample or
// fragments, every round of a group exchanges a part of the parameters, except the last, which exchanges all of them;
// replicas then begin from the checkpoint again. With an overlap, the update of a round, or its fragment, is exchanged
// while the next round is trained, except in the last round of a group. With a topology, replicas average in pairs.
type Replicas struct {
	// the part is one of this number of elements of every parameter, drawn from the seed; a power of two; 0: all of them
	Sample int `job:"sample" in:"[0,4096]"`
	// the part is one of this number of fragments of the layers, in turn; 0: all of them
	Fragments int `job:"fragments" in:"[0,64]"`
	Rounds    int `job:"rounds" in:"[2,256]"` // in a row

	// the share of its own difference with which a unit continues before the others have received it: 1 is all, 0:
	// rounds do not overlap.
	Overlap float64 `job:"overlap" in:"[0,1]"`

	Topology string `job:"topology" one:"none complete ring expander small_world"` // who may be paired with whom
}

// On reports whether units train replicas.
func (r Replicas) On() bool { return r.carried() || r.Paired() }

// carried reports whether units carry the state that they begin with.
func (r Replicas) carried() bool { return r.Sample > 0 || r.Fragments > 0 || r.Overlap > 0 }

// Paired reports whether they average in pairs.
func (r Replicas) Paired() bool { return r.Topology != "" && r.Topology != "none" }

// Group is the number of rounds in a row through which units carry a state; 0: they carry none.
func (s Strategy) Group() uint32 {
	switch {
	case s.Replicas.carried():
		return uint32(s.Replicas.Rounds)
	case s.Compression.ErrorFeedback:
		return uint32(s.Compression.FeedbackRounds)
	case s.OptimizerStateRounds > 1:
		return uint32(s.OptimizerStateRounds)
	}
	return 0
}

// sparseWidths are the widths of the values of an update of which only the largest elements are sent, by their words.
var sparseWidths = map[string]int{"none": 32, "bf16": 16, "int8": 8, "int2": 2, "sign": 1}

// TopK returns how many of 4096 elements of an update are sent, in how many bits; ok is false if all of them are.
func (c Compression) TopK() (k, bits int, ok bool) {
	k = min(4096, max(1, int(math.RoundToEven(c.TopKRatio*4096))))
	return k, sparseWidths[c.Quantize], c.TopKRatio > 0
}

// SlicesFrom is from how many workers on rounds are reduced in slices unless the job says otherwise.
const SlicesFrom = 32

// Words lists the rules.
func (Aggregation) Words() map[string]string {
	return map[string]string{"rule": "mean trimmed_mean median krum multi_krum geometric_median centered_clip " +
		"clipped_mean contributor_mean"}
}

// Aggregation is how the workers' updates become one.
type Aggregation struct {
	Rule string  `job:"rule"`
	Trim float64 `job:"trim" in:"[0,0.5)"` // fraction dropped at each end, of trimmed_mean

	// in how many parts a round is reduced by members drawn for each; 1: every member combines all updates for
	// itself. auto is 1 below 32 workers, and where a part cannot be reduced by itself.
	Slices quantity.Auto `job:"slices"`
}

// Workers says how many machines train: a number, or {min, target, max}.
type Workers struct {
	Min    int `job:"min" in:"[1,1024]"`
	Target int `job:"target" in:"[1,1024]"`
	Max    int `job:"max" in:"[1,1024]"`

	// speeds of the machines that the units of a round are made for, relative to the fastest: one number for each
	// of target units, the largest 1. A unit for half the speed has half the steps. None: all units have sync_steps.
	RelativeSpeeds []float64 `job:"relative_speeds" old:"paces" in:"(0,1]" size:"[1,1024]"`
}

// Verification is the part of the work that verifiers execute a second time.
type Verification struct {
	// full: every unit is audited; none: no unit is, and any verifier may still challenge
	Mode string `job:"mode" one:"spot_check full none"`
	// that a run has; each audit is drawn from all of the network
	Verifiers int     `job:"verifiers" in:"[1,64]"`
	Fraction  float64 `job:"fraction" in:"(0,1]"` // probability that a work unit is audited
	// the part of a unit that an audit executes: the whole, or up to a drawn segment
	Audit string `job:"audit" old:"segments" one:"whole partial" oldone:"all=whole drawn=partial"`
	// how members look at updates before they attest; default: updates, losses where numerics is tolerant
	Screen    string           `job:"screen" one:"off updates losses"`
	Tolerance Tolerance        `job:"tolerance"` // where numerics is tolerant
	Attested  machine.Attested `job:"attested"`
}

// Tolerance is how far an update may be from that of the exact execution of its unit.
type Tolerance struct {
	Distance float64 `job:"distance" in:"(0,1]"` // largest, relative to the length of the exact update
	Cosine   float64 `job:"cosine" in:"[0,1]"`   // smallest
}

// Resources is what one worker must have.
type Resources struct {
	AnyOf     []Machine          `job:"any_of"`
	Disk      quantity.Size      `job:"disk"`
	Bandwidth quantity.Bandwidth `job:"bandwidth"`
	Placement Placement          `job:"placement"`
	// of measured machines; none: any machine
	Classes []string `job:"classes" one:"cpu apple consumer professional datacentre"`
	// of uptime that a worker commits to, at least
	Tier string `job:"tier" one:"none bronze silver gold"`
	// a machine that is attested, with one of strategy.verification.attested.measurements
	Attested bool `job:"attested"`
}

// Machine is one acceptable kind of worker.
type Machine struct {
	Accelerators string           `job:"accelerators"` // how many, and of which model: "any:1", "h100:8"
	CPUs         quantity.AtLeast `job:"cpus"`
	Memory       quantity.Size    `job:"memory"`
}

// Placement narrows where workers may be.
type Placement struct {
	Regions []string `job:"regions"`
	// n/(n+1) of a worker that has passed n audits since its last failure
	MinReputation float64  `job:"min_reputation" in:"[0,1)"`
	Exclude       []string `job:"exclude"` // regions

	Jurisdictions        []string `job:"jurisdictions"` // ISO 3166 codes of countries; none: any
	ExcludeJurisdictions []string `job:"exclude_jurisdictions"`
	FailureDomains       int      `job:"failure_domains" in:"[0,1024]"` // different ones among the workers, at least
}

// Budget bounds what the job may cost. Amounts are in ZEN, or in another coin of the network.
type Budget struct {
	Coin    string          `job:"coin"` // symbol of a coin that governance registered; empty: ZEN
	MaxCost quantity.Amount `job:"max_cost"`
	// for 10^15 floating-point operations: an offer above it is not taken, and no worker is paid more; default: 1000
	MaxPrice        quantity.Amount   `job:"max_price,null"`
	MaxPricePerHour quantity.Amount   `job:"max_price_per_hour,null"` // 0: any price
	Deadline        quantity.Duration `job:"deadline,null"`           // 0: none
	OnExceed        string            `job:"on_exceed" one:"pause cancel"`
	ContributorPart float64           `job:"contributor_part" in:"[0,1]"` // of the model's shares, to its verified workers
}

// Checkpoint says which checkpoints are kept. Steps are multiples of sync_steps.
type Checkpoint struct {
	EverySteps int `job:"every_steps" in:"[1,1000000000]"`
	KeepLast   int `job:"keep_last" in:"[1,1000000]"`
}

// Eval says when and how the checkpoint is measured. Steps are multiples of sync_steps.
type Eval struct {
	EverySteps int      `job:"every_steps" in:"[1,1000000000]"`
	Tasks      []string `job:"tasks" one:"perplexity preference accuracy reward recall denoising"`
	Prompts    []string `job:"prompts" size:"[0,64]"`
}

// Tracking says where metrics go besides the output folder.
type Tracking struct {
	Tensorboard string `job:"tensorboard,null"` // folder of event files, relative to the current folder
	MLflow      MLflow `job:"mlflow,null"`
}

// MLflow is a tracking server.
type MLflow struct {
	URI        string `job:"uri,null"`
	Experiment string `job:"experiment,null"`
}

// Output says what the run leaves behind, and where.
type Output struct {
	Dir     string        `job:"dir,local"` // relative to the current folder, not to the job file
	Formats []string      `job:"formats" one:"safetensors gguf" size:"[1,4]"`
	License string        `job:"license,null"`
	Push    []stores.Push `job:"push,local" size:"[0,8]"` // where the model is copied to
}

// Notify says whom to tell.
type Notify struct {
	Webhook string   `job:"webhook,null"`
	On      []string `job:"on" one:"finished failed paused budget_80 loss_rises member_lost pushed push_failed"`
}
