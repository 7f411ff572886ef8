package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// FileObject is a file of examples, in OpenAI's form.
type FileObject struct {
	ID        string `json:"id"`     // file- and a digest of its bytes
	Object    string `json:"object"` // file
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"` // seconds since 1970
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"` // fine-tune, or fine-tune-results: what a job measured, as comma-separated values
	Status    string `json:"status"`  // processed: what is kept has been read line by line
}

// FileObjects is a page of files, in OpenAI's form.
type FileObjects struct {
	Object  string       `json:"object"` // list
	Data    []FileObject `json:"data"`
	HasMore bool         `json:"has_more"`
}

// FileDeleted says that a file was removed, in OpenAI's form.
type FileDeleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // file
	Deleted bool   `json:"deleted"`
}

// OpenAIError is the body of an error on the paths of OpenAI's interface.
type OpenAIError struct {
	Error OpenAIProblem `json:"error"`
}

// OpenAIProblem is an error, in OpenAI's form.
type OpenAIProblem struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"` // that is to blame
	Code    *string `json:"code"`  // stable
}

// Auto is a number, or auto: zero.
type Auto float64

var errAuto = errors.New(`it is neither a number above 0 nor "auto"`)

// UnmarshalJSON reads either form.
func (a *Auto) UnmarshalJSON(text []byte) error {
	var word string
	var number float64
	switch {
	case json.Unmarshal(text, &word) == nil && (word == "auto" || string(text) == "null"):
		*a = 0
	case json.Unmarshal(text, &number) == nil && number > 0:
		*a = Auto(number)
	default:
		return errAuto
	}
	return nil
}

// MarshalJSON writes the form that it has.
func (a Auto) MarshalJSON() ([]byte, error) {
	if a == 0 {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(float64(a))
}

// FineTuningRequest asks for a model to be tuned, in OpenAI's form.
type FineTuningRequest struct {
	Model           string          `json:"model"`                     // of /v1/models, or a folder of the server's data
	TrainingFile    string          `json:"training_file"`             // identifier of a file of examples
	ValidationFile  string          `json:"validation_file,omitempty"` // of another, for validation losses
	Hyperparameters Hyperparameters `json:"hyperparameters,omitzero"`
	Method          *TuningMethod   `json:"method,omitempty"` // in place of hyperparameters
	// in the name of the tuned model: 1 to 64 letters, digits, points, hyphens and underscores
	Suffix string  `json:"suffix,omitempty"`
	Seed   *uint64 `json:"seed,omitempty"` // 42 unless given

	// of the asker's: up to 16 keys of 64 characters, with values of 512
	Metadata     map[string]string `json:"metadata,omitempty"`
	Integrations []Integration     `json:"integrations,omitempty"` // none: metrics are sent nowhere
}

// Integration is a tracking service of a fine-tuning job, in the form of the OpenAI API. This server supports none, and
// answers an empty list.
type Integration struct {
	Type string `json:"type"`
}

// UnmarshalJSON reads the type alone: what else there is belongs to the service.
func (i *Integration) UnmarshalJSON(text []byte) error {
	var read struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(text, &read)
	i.Type = read.Type
	return err
}

// Tuned is the name of the model that a run makes of a request.
func (r FineTuningRequest) Tuned(run string) string {
	return strings.Join([]string{"ft", r.Model, r.Suffix, run}, ":")
}

// OpenAIModel is a model that can be asked, in OpenAI's form.
type OpenAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // model
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// OpenAIModels are the models that can be asked, in OpenAI's form.
type OpenAIModels struct {
	Object string        `json:"object"` // list
	Data   []OpenAIModel `json:"data"`
}

// ModelDeleted says that a model was removed, in OpenAI's form.
type ModelDeleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // model
	Deleted bool   `json:"deleted"`
}

// Hyperparameters are those of OpenAI's form.
type Hyperparameters struct {
	Epochs Auto `json:"n_epochs,omitempty"` // times that the examples are seen, 1 to 50; auto: 3
	// sequences of a step, 1 to 256, an even number but for 1; auto: 8
	Batch Auto `json:"batch_size,omitempty"`
	Rate  Auto `json:"learning_rate_multiplier,omitempty"` // of a rate of 3e-4; auto: 1
}

// TuningMethod is how a model is tuned, in OpenAI's form.
type TuningMethod struct {
	Type          string               `json:"type"` // supervised, dpo or reinforcement
	Supervised    SupervisedMethod     `json:"supervised,omitzero"`
	DPO           DPOMethod            `json:"dpo,omitzero"`            // learns from pairs of answers
	Reinforcement *ReinforcementMethod `json:"reinforcement,omitempty"` // from the grades of answers that it draws
}

// DPOMethod has the settings of a method, in OpenAI's form.
type DPOMethod struct {
	Hyperparameters DPOHyperparameters `json:"hyperparameters,omitzero"`
}

// DPOHyperparameters are Hyperparameters, of batches of pairs and a rate of 5e-5, and one more.
type DPOHyperparameters struct {
	Epochs Auto `json:"n_epochs,omitempty"`
	Batch  Auto `json:"batch_size,omitempty"`
	Rate   Auto `json:"learning_rate_multiplier,omitempty"`
	Beta   Auto `json:"beta,omitempty"` // how closely the model is held to the one that it begins as, up to 2; auto: 0.1
}

// ReinforcementMethod has the settings of a method, in OpenAI's form.
type ReinforcementMethod struct {
	Grader          Grader                       `json:"grader"`
	Hyperparameters ReinforcementHyperparameters `json:"hyperparameters,omitzero"`
}

// Grader rewards an answer, in OpenAI's form: of the type string_check, which compares it with the right one,
// text_similarity, which says how similar they are, python, whose source is one that Starlark reads, too, or multi, a
// formula of other graders.
type Grader struct {
	Type      string                `json:"type"`
	Name      string                `json:"name,omitempty"`
	Operation string                `json:"operation,omitempty"`
	Input     string                `json:"input,omitempty"`             // {{sample.output_text}}
	Reference string                `json:"reference,omitempty"`         // {{item.KEY}}, of the key of an example
	Metric    string                `json:"evaluation_metric,omitempty"` // of text_similarity
	Source    string                `json:"source,omitempty"`            // of python: defines grade(sample, item)
	Graders   map[string]GraderPart `json:"graders,omitempty"`           // of multi
	Formula   string                `json:"calculate_output,omitempty"`  // of multi: an expression of the names of Graders
}

// GraderPart is a grader among those of a multi.
type GraderPart struct {
	Type      string `json:"type"`
	Name      string `json:"name,omitempty"`
	Operation string `json:"operation,omitempty"`
	Input     string `json:"input,omitempty"`
	Reference string `json:"reference,omitempty"`
	Metric    string `json:"evaluation_metric,omitempty"`
	Source    string `json:"source,omitempty"`
}

// Whole is the part as a grader of its own.
func (p GraderPart) Whole() Grader {
	return Grader{Type: p.Type, Name: p.Name, Operation: p.Operation, Input: p.Input, Reference: p.Reference,
		Metric: p.Metric, Source: p.Source}
}

// Part is a grader that is no multi as a part of one.
func (g Grader) Part() GraderPart {
	return GraderPart{Type: g.Type, Name: g.Name, Operation: g.Operation, Input: g.Input, Reference: g.Reference,
		Metric: g.Metric, Source: g.Source}
}

// UnmarshalJSON implements json.Unmarshaler. Of a grader that asks a model or a service the type and the name alone are
// read, so that it is refused for that; of any other an unknown key is an error.
func (g *Grader) UnmarshalJSON(raw []byte) error {
	type plain Grader
	return graderOf(raw, &g.Type, &g.Name, (*plain)(g))
}

// UnmarshalJSON implements json.Unmarshaler, as of a Grader.
func (p *GraderPart) UnmarshalJSON(raw []byte) error {
	type plain GraderPart
	return graderOf(raw, &p.Type, &p.Name, (*plain)(p))
}

// graderOf reads a grader into its type and name, or into all of it.
func graderOf(raw []byte, kind, name *string, all any) error {
	var head struct{ Type, Name string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	if slices.Contains([]string{"score_model", "label_model", "endpoint"}, head.Type) {
		*kind, *name = head.Type, head.Name
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(all)
}

// ReinforcementHyperparameters are Hyperparameters, of batches of prompts and a rate of 5e-5, and more.
type ReinforcementHyperparameters struct {
	Epochs    Auto   `json:"n_epochs,omitempty"`
	Batch     Auto   `json:"batch_size,omitempty"`
	Rate      Auto   `json:"learning_rate_multiplier,omitempty"`
	Compute   Auto   `json:"compute_multiplier,omitempty"` // of 16 answers to a prompt
	Interval  Auto   `json:"eval_interval,omitempty"`      // steps between two evaluations; auto: as in any job
	Samples   Auto   `json:"eval_samples,omitempty"`       // 1 or auto: an evaluation takes the most likely answer
	Reasoning string `json:"reasoning_effort,omitempty"`   // default: models have no other
}

// SupervisedMethod has the settings of a method, in OpenAI's form.
type SupervisedMethod struct {
	Hyperparameters Hyperparameters `json:"hyperparameters,omitzero"`
}

// FineTuningJob is a job that tunes a model, in OpenAI's form. Its identifier is that of the run, which /v1/jobs knows
// too.
type FineTuningJob struct {
	ID              string         `json:"id"`
	Object          string         `json:"object"`           // fine_tuning.job
	CreatedAt       int64          `json:"created_at"`       // seconds since 1970
	FinishedAt      *int64         `json:"finished_at"`      // null: it has not ended
	EstimatedFinish *int64         `json:"estimated_finish"` // null: not known
	Status          string         `json:"status"`           // queued, running, paused, succeeded, failed or cancelled
	Error           *OpenAIProblem `json:"error"`            // of a job that failed, or is paused
	Model           string         `json:"model"`
	FineTunedModel  *string        `json:"fine_tuned_model"` // null: it has not succeeded
	OrganizationID  string         `json:"organization_id"`
	// of /v1/files, once it has ended: its metrics; GET /v1/jobs/{id}/files has all that it left
	ResultFiles     []string        `json:"result_files"`
	TrainedTokens   *uint64         `json:"trained_tokens"`
	TrainingFile    string          `json:"training_file"`
	ValidationFile  *string         `json:"validation_file"`
	Hyperparameters Hyperparameters `json:"hyperparameters"`
	Method          TuningMethod    `json:"method"`
	Seed            uint64          `json:"seed"`
	Suffix          *string         `json:"user_provided_suffix"`

	Metadata     map[string]string `json:"metadata"`
	Integrations []Integration     `json:"integrations"` // none
}

// FineTuningJobs is a page of jobs that tune models, in OpenAI's form.
type FineTuningJobs struct {
	Object  string          `json:"object"` // list
	Data    []FineTuningJob `json:"data"`
	HasMore bool            `json:"has_more"`
}

// FineTuningEvent is an event of a job, in OpenAI's form.
type FineTuningEvent struct {
	ID        string         `json:"id"`
	Object    string         `json:"object"` // fine_tuning.job.event
	CreatedAt int64          `json:"created_at"`
	Level     string         `json:"level"` // info, warn or error
	Message   string         `json:"message"`
	Type      string         `json:"type"`           // message or metrics
	Data      *TuningMetrics `json:"data,omitempty"` // of type metrics
}

// TuningMetrics are those of a step, in OpenAI's form.
type TuningMetrics struct {
	Step      int      `json:"step"`
	TrainLoss float64  `json:"train_loss"`           // mean of the round that ended with the step
	ValidLoss *float64 `json:"valid_loss,omitempty"` // on the validation file
}

// FineTuningEvents is a page of events, the latest first, in OpenAI's form.
type FineTuningEvents struct {
	Object  string            `json:"object"` // list
	Data    []FineTuningEvent `json:"data"`
	HasMore bool              `json:"has_more"`
}

// FineTuningCheckpoint is a checkpoint that the network attested, in OpenAI's form.
type FineTuningCheckpoint struct {
	ID        string        `json:"id"`
	Object    string        `json:"object"` // fine_tuning.job.checkpoint
	CreatedAt int64         `json:"created_at"`
	Job       string        `json:"fine_tuning_job_id"`
	Model     string        `json:"fine_tuned_model_checkpoint"` // the last is the tuned model; no other can be asked
	Step      int           `json:"step_number"`
	Metrics   TuningMetrics `json:"metrics"`
	StateRoot string        `json:"state_root"` // that was attested
}

// FineTuningCheckpoints is a page of checkpoints, the latest first, in OpenAI's form.
type FineTuningCheckpoints struct {
	Object  string                 `json:"object"` // list
	Data    []FineTuningCheckpoint `json:"data"`
	HasMore bool                   `json:"has_more"`
	FirstID *string                `json:"first_id"`
	LastID  *string                `json:"last_id"`
}
