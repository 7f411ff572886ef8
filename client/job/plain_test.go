package job

// plain describes each key of a job file to its author; editors show it.
var plain = map[string]string{
	"Spec.APIVersion": "the version of the format",
	"Spec.Kind":       "the kind of job that the file describes",
	"Spec.Name":       "the name of the job; default: the name of the file without its extension",
	"Spec.Labels":     "notes of the author, as key: value; no result depends on them",
	"Spec.Seed":       "the seed of every random choice of the training",
	"Spec.Task": "what the model learns: to continue text, to answer as in examples (sft), to prefer one of two " +
		"answers (dpo), to answer from rewards (grpo), to name the class of an image or of a text (classify) " +
		"or of a node of a graph (graph), to give texts that belong together vectors that are close (embed), " +
		"or to draw images (diffusion)",
	"Spec.DPO":      "preference training (Rafailov et al. 2023), of task: dpo",
	"DPO.Beta":      "how closely the model is held to the base model: the larger, the closer",
	"Spec.Rollout":  "how answers are drawn, of task: grpo (Shao et al. 2024)",
	"Rollout.Group": "the number of answers to each prompt, whose rewards are compared with each other",
	"Rollout.MaxTokens": "the largest number of tokens of an answer; a prompt has the rest of sequence_len; default: " +
		"32, or half of sequence_len",
	"Rollout.TopP": "the share of the probability that tokens are drawn from, the most probable ones: the policy that " +
		"learns is that one, too; 1: all tokens",
	"Rollout.Stages": "the number of texts that each player of a game draws: an answer; with 2 also a final answer, " +
		"after reading answers; with 3 also a critique between them; 1: there is no game; group is the number of players",
	"Rollout.Reads": "the number of players whose texts of earlier stages a player reads, itself included; default: 2",
	"Rollout.Critics": "whose answers the players of a game read: those of the model that plays (own), or, in a swarm, " +
		"the groups that it learns from of other models, about which it then draws critiques and final answers (others)",
	"Rollout.Stop": "a text that is one token, with which an answer ends whose reward has rules; the token that ends " +
		"documents ends it, too",
	"Reward.Rules": "the ways to reward the text of an answer, in place of exact and prefix; reward may be this list",
	"RewardRule.Kind": "how the rule rewards: 1 for the wanted text (exact), the share of it before the first wrong " +
		"byte (prefix), 1 for an answer that contains it (contains), whose last number is the wanted one (numeric), that " +
		"matches pattern (regex), of min_length to max_length characters (length), that is JSON (json), or that makes " +
		"target of numbers (countdown); by a function (starlark); or by the score of a reward model (model)",
	"RewardRule.Weight":    "the weight of the rule, relative to those of the others",
	"RewardRule.Field":     "the field of an example that the answer is compared with; default: completion",
	"RewardRule.Tolerance": "the largest difference from the wanted number, of kind: numeric",
	"RewardRule.Pattern":   "the regular expression (RE2) that matches somewhere in the answer, of kind: regex",
	"RewardRule.MinLength": "the smallest number of characters, of kind: length",
	"RewardRule.MaxLength": "the largest number of characters, of kind: length",
	"RewardRule.Source": "the source of reward(prompt, answer, fields) in Starlark, which returns a number, of kind: " +
		"starlark",
	"RewardRule.File": "the file with that source, relative to the folder of the job file",
	"RewardRule.Model": "the folder of a reward model, relative to the folder of the job file, whose score is the " +
		"reward, of kind: model",
	"RewardRule.StepLimit": "the steps that the function may take for an answer; a reward that takes more is 0",
	"Rollout.Staleness": "the number of rounds, at most, by which the model that drew the answers is older than that " +
		"which learns from them; 0: a unit draws its answers by itself, with the weights that it then trains",
	"Rollout.Correction": "how a token counts of an answer that an older model drew, or another one, by the ratio of " +
		"its probabilities in the model that learns and in that one: by the ratio, unless that has left 0.8 to 1.2 " +
		"(clipped), or as 1 in an answer above the mean of its group and by the ratio, at most 1, in one below it " +
		"(tapered); default: clipped",
	"Rollout.Generators": "the number of workers besides those of strategy.workers: their seats go to machines that " +
		"offer to draw answers alone, and as far as there are none to other workers",
	"Rollout.Sharing": "whether each worker of strategy.workers trains a model of its own, from its own answers and " +
		"from those of the others (swarm), or all train one (none)",
	"Rollout.Own": "the number of prompts to which each model of a swarm draws answers in a step; default: 4, or " +
		"training.global_batch_size divided by the workers",
	"Rollout.Shared": "the number of groups of answers of other models that a model of a swarm learns from in a step " +
		"besides its own; groups whose rewards are all equal are left out; default: 4",
	"Rollout.KL":          "the weight of the divergence from the base model",
	"Rollout.Temperature": "the temperature of the distribution that tokens are drawn from",
	"Spec.Reward": "the weights of the parts of a reward, relative to each other, or the list of its rules, of " +
		"task: grpo",
	"Reward.Exact":  "the weight of 1 for the right answer, and 0 for any other",
	"Reward.Prefix": "the weight of the share of the tokens of the right answer before the first wrong one",
	"Spec.Parallel": "how the model is cut into stages, each of which a worker of its own computes; without it every " +
		"worker has the whole model",
	"Parallel.Skip": "the share of the stages that a part of the batch leaves out in training, on average, but never " +
		"the first and the last; the stages between them are left out equally often, and hold more layers; 0: none",
	"Parallel.Stages": "the number of parts into which the layers are divided, one after the other",
	"Parallel.Replicas": "the number of times that the stages are trained, on parts of the batch; strategy.workers is " +
		"stages times replicas, unless fewer workers are to have several stages each, by their measured speed; default: 1",
	"Parallel.Microbatches": "the number of parts of the batch of a replica, which follow each other through the " +
		"stages; default: stages",
	"Parallel.Schedule": "the order of steps; synchronous: every stage ends a step before it begins the next; " +
		"asynchronous: stages do not wait for each other, and learn from gradients of weights before a fixed number of " +
		"steps, which the step of adamw corrects",
	"Parallel.Delay": "the number of steps by which the gradients of the first stage are late in an asynchronous " +
		"schedule; more of them hide a longer latency, and fewer lose less; later stages are late by fewer; default: as " +
		"few as keep all stages at work without a latency",
	"Spec.Graph":          "how a graph is read, of task: graph",
	"Graph.Directed":      "whether an edge leads from its source to its target alone; otherwise it leads both ways",
	"Spec.Diffusion":      "the noise that a network learns to take out of images, of task: diffusion (Ho et al. 2020)",
	"Diffusion.Timesteps": "the number of steps from an image to noise, and of those back; default: 1000",
	"Spec.Embed":          "the loss of vectors of texts, of task: embed",
	"Embed.Temperature": "what the cosines of vectors are divided by in the loss: the smaller, the more do the closest " +
		"other texts count; default: 0.05",
	"Spec.Model":       "what is trained",
	"Spec.Datasets":    "the files that the model is trained on",
	"Spec.ValSetSize":  "the fraction of the tokens that is held out for evaluation",
	"Spec.SequenceLen": "the number of tokens of one training example",
	"Spec.ShuffleShards": "how many shards of the data, of 1048576 tokens, have their examples mixed at a time, so that " +
		"a unit reads few shards; 0: all",
	"Spec.EncryptData": "whether the shards of the data are encrypted, and a worker or verifier gets the keys of those " +
		"alone that its unit reads; it sees these in the clear",
	"Spec.SamplePacking": "whether training examples are cut from the joined documents; " +
		"false: each document begins one, and is filled up to sequence_len",
	"Spec.Training": "the inner loop; steps are inner steps, and batch sizes count " +
		"sequences",
	"Spec.Executor": "what computes the steps: the built-in kernels, or PyTorch at workers " +
		"that have set it up",
	"Spec.Strategy":   "how the work of many workers becomes one checkpoint",
	"Spec.Resources":  "what a worker must have",
	"Spec.Budget":     "what the job may cost, in ZEN",
	"Spec.Checkpoint": "which checkpoints are kept; steps are multiples of sync_steps",
	"Spec.Eval": "when and how the checkpoint is measured; steps are multiples of " +
		"sync_steps",
	"Spec.Tracking": "where metrics go besides the output folder",
	"Spec.Output":   "what the run leaves behind, and where",
	"Spec.Notify":   "the address that gets the events of the job",
	"Model.BaseModel": "the folder of a model to start from; without it, training starts " +
		"from random weights",
	"Model.Architecture": "the architecture of a model that starts from random weights; " +
		"with base_model, the one that it must have",
	"Model.Config": "the size of the model, in the keys of a Hugging Face config.json",
	"Model.Tokenizer": "how text becomes tokens: byte-level, the path of a tokenizer.json, " +
		"or {train: ...} to train one on the data",
	"Model.Adapter": "a small addition to the base model that is trained in its place",
	"Model.LoadIn8bit": "whether the weights under an adapter are kept in 8 bits, with a scale for each block of 64 in " +
		"a row",
	"Model.LoadIn4bit": "whether they are kept in 4 bits, as NF4 has it",
	"Adapter.LoRA":     "a low-rank adapter (Hu et al., 2021)",
	"LoRA.R":           "the rank of the adapter",
	"LoRA.Alpha":       "the scale of the adapter: its output is multiplied by alpha/r",
	"LoRA.Dropout":     "the fraction of the inputs of the adapter that is dropped in training",
	"LoRA.TargetModules": "the layers that get an adapter, by the last part of their names; " +
		"default: every linear layer except the output",
	"Dataset.Path": "the files: a path or a glob that starts from the folder of the job " +
		"file, where ** stands for any number of folders; or an http or https address, " +
		"which is downloaded once",
	"Dataset.SHA256": "the digest of the file at an http or https address, in hexadecimal; " +
		"default: that of the first download, which is recorded in the folder of the job file",
	"Dataset.Format": "the format of the files",
	"Dataset.Field": "the field of a jsonl object, or the column of a csv or parquet file, that " +
		"holds the text",
	"Dataset.LabelField": "the field or column that holds the class of a text, with task: classify and a language " +
		"model; default: label",
	"Dataset.RewardFields": "the fields of a jsonl object that rules of rewards read, in place of its completion",
	"Dataset.PositiveField": "the field or column that holds the text that belongs to the text of field, with task: " +
		"embed; default: positive",
	"Dataset.Split":     "what the files are used for",
	"Dataset.Weight":    "how often the text is used: 2 is twice, 0.5 is its first half",
	"Training.MaxSteps": "the length of the run in inner steps; give this or num_epochs",
	"Training.NumEpochs": "the length of the run in passes over the data, rounded up to " +
		"whole rounds; give this or max_steps",
	"Training.Dropout": "the share of the embeddings, and of the output of each sublayer, that is dropped in training",
	"Training.TrainOnInputs": "whether the loss is over the whole of a conversation; false: over what the " +
		"assistant says",
	"Training.GlobalBatchSize":      "the number of sequences of one step, over all workers",
	"Training.MicroBatchSize":       "the number of sequences that a worker computes at a time",
	"Training.GradientAccumulation": "the number of micro-batches in one step of a worker",
	"Training.LearningRate":         "the largest learning rate, which is reached after the warm-up",
	"Training.LRScheduler":          "how the learning rate falls after the warm-up; wsd: at the end alone",
	"Training.LRDecayRatio": "the share of the steps, the last ones, in which the learning rate of wsd falls; " +
		"default: 0.2",
	"Training.WarmupSteps": "the number of steps in which the learning rate rises from 0; " +
		"give this or warmup_ratio",
	"Training.WarmupRatio": "the warm-up as a fraction of the run; give this or " +
		"warmup_steps",
	"Training.MinLRRatio":  "the learning rate at the end, as a fraction of learning_rate",
	"Training.Optimizer":   "the inner optimizer",
	"Training.MaxGradNorm": "the norm that gradients are clipped to; 0: no clipping",
	"Training.Precision": "the number format of the inputs and outputs of layers, and of weights as they read them; " +
		"sums, the weights themselves and gradients are fp32",
	"Training.Numerics": "what two executions of the same work must have in common: every " +
		"bit, or results within a tolerance",
	"Training.GradientCheckpointing": "whether activations are computed twice to save memory, with the same bits",
	"Optimizer.Name":                 "the name of the inner optimizer",
	"Optimizer.WeightDecay": "the weight decay of matrices: decoupled, but for that of sgd, which is part of the " +
		"gradient; default: 0.1, of sgd and adafactor 0",
	"Optimizer.Betas": "the decay rates of the first and the second moment, of lion of the step and of the moment; " +
		"default: [0.9, 0.95], of lion [0.9, 0.99], of adafactor [0, 0.999]",
	"Optimizer.Eps":      "the number that adamw adds to the root of the second moment",
	"Optimizer.Momentum": "the momentum of sgd; default: 0.9",
	"Optimizer.State": "the type of the numbers that the optimizer remembers; bf16 and int8 round them after every " +
		"step, to half or about a quarter of the memory",
	"Optimizer.Nesterov": "whether sgd looks ahead by its momentum",
	"Strategy.Method":    "the name of the strategy; it sets the defaults of the keys below",
	"Strategy.SyncSteps": "the number of inner steps between two synchronizations: the " +
		"length of a round",
	"Strategy.ProximalMu": "the strength with which a worker is pulled back to the " +
		"checkpoint (FedProx)",
	"Strategy.OptimizerStateRounds": "the number of rounds through which the moments of the inner " +
		"optimizer are kept; 1: they begin with zero in every round; default: 8, or as many rounds as other " +
		"state is kept",
	"Strategy.OuterOptimizer": "moves the checkpoint by the aggregated update",
	"Strategy.Compression":    "how an update is made small before it is sent",
	"Strategy.Replicas": "settings of strategies whose workers continue from their own " +
		"weights and exchange a part of them",
	"Strategy.Aggregation": "how the workers' updates become one",
	"Strategy.Workers":     "how many machines train: a number, or {min, target, max}",
	"Strategy.RoundTimeout": "the time in which a worker must submit its work in the first " +
		"rounds; later deadlines follow the observed times",
	"Strategy.Verification": "the share of the work that a verifier executes again",
	"OuterOptimizer.Name": "the name of the outer optimizer; adamw and signsgd take a step " +
		"with the combined gradients, gossip averages workers in pairs",
	"OuterOptimizer.LR": "the outer learning rate; of adamw and signsgd, a factor of " +
		"training.learning_rate",
	"OuterOptimizer.Momentum": "the momentum of nesterov and gossip",
	"OuterOptimizer.Betas":    "the decay rates of the two moments of adam and yogi",
	"OuterOptimizer.Eps": "the number that adam and yogi add to the root of the second " +
		"moment (tau in their paper)",
	"Compression.TopKRatio": "the fraction of the elements of an update that is sent, the " +
		"largest of every 4096; 0: all",
	"Compression.Quantize": "the number format in which updates are sent",
	"Compression.Transform": "the transform of an update before it is compressed; dct: the " +
		"cosine transform of blocks of 64 x 64 elements",
	"Compression.ErrorFeedback": "whether the part of an update that compression lost is " +
		"added to the next update of the same unit",
	"Compression.FeedbackRounds": "the number of rounds after which error feedback begins " +
		"with zero again; default: 32, or optimizer_state_rounds",
	"Replicas.Sample": "the number of parts that the elements of every parameter are " +
		"divided into, of which a round exchanges one; a power of two; 0: all elements are exchanged",
	"Replicas.Fragments": "the number of groups of layers, of which a round exchanges one " +
		"in turn; 0: all layers are exchanged",
	"Replicas.Rounds": "the number of rounds after which all workers begin from the same " +
		"checkpoint again",
	"Replicas.Overlap": "the share of its own update with which a worker continues while " +
		"the update is exchanged; 0: rounds do not overlap",
	"Replicas.Topology": "which workers may be paired",
	"Aggregation.Rule":  "the rule that combines the updates, such as their mean",
	"Aggregation.Trim":  "the fraction of the values that trimmed_mean drops at each end",
	"Aggregation.Slices": "the number of slices of the update, each combined by members " +
		"that are drawn for it; 1: every member combines everything; auto: 1 below 32 workers, and where " +
		"the rule allows no slices",
	"Workers.Min":    "the smallest number of workers with which the run begins",
	"Workers.Target": "the number of units of a round, one for each worker",
	"Workers.Max":    "the largest number of workers that the run admits",
	"Workers.RelativeSpeeds": "the speeds of the machines relative to the fastest, one number for " +
		"each worker and the largest 1: a machine of 0.5 gets units of half the steps; default: all units " +
		"have sync_steps",
	"Verification.Mode": "spot_check: a sample of the work is re-executed; none: nothing " +
		"is, but any verifier may still challenge",
	"Verification.Verifiers": "the number of verifiers of a run; each audit is drawn from " +
		"all verifiers of the network",
	"Verification.Fraction": "the probability that a unit of work is audited; all units of " +
		"a new worker are",
	"Verification.Audit": "the part of a unit that an audit re-executes: the whole, or the " +
		"segments up to a drawn one",
	"Verification.Screen": "how members compare updates before they attest; default: " +
		"updates, or losses if numerics is tolerant",
	"Verification.Tolerance": "how far an update may be from the exact result, if numerics " +
		"is tolerant",
	"Tolerance.Distance": "the largest distance from the exact update, relative to its " +
		"length",
	"Tolerance.Cosine": "the smallest cosine with the exact update",
	"Resources.AnyOf": "the kinds of machine of which a worker must have one; default: any " +
		"machine",
	"Resources.Disk":      "the free disk space that a worker must have",
	"Resources.Bandwidth": "the upload bandwidth that a worker must have",
	"Resources.Placement": "where workers may be",
	"Resources.Classes":   "the classes of measured machines that are accepted; default: all",
	"Resources.Tier":      "the lowest tier of uptime that a worker must have committed to",
	"Resources.Attested": "whether a worker's machine must be attested by a quote, with one " +
		"of strategy.verification.attested.measurements",
	"Verification.Attested": "what the job makes of workers whose machines are attested by " +
		"a quote",
	"Attested.Measurements": "what may run in such machines, as starling worker attest " +
		"prints it; none: no machine counts as attested",
	"Attested.Factor": "the part of the audit probability that remains for such workers",
	"Machine.Accelerators": "the accelerators of a machine, as model:number, such as any:1 " +
		"or h100:8",
	"Machine.CPUs":      "the number of cores that a machine must have",
	"Machine.Memory":    "the memory that a machine must have",
	"Placement.Regions": "the regions where workers may be; default: everywhere",
	"Placement.MinReputation": "the lowest reputation of a worker, which is n/(n+1) after n " +
		"passed audits since its last failure",
	"Placement.Exclude": "the regions where no worker may be",
	"Placement.Jurisdictions": "the countries where workers may be, as ISO 3166 codes; " +
		"default: all",
	"Placement.ExcludeJurisdictions": "the countries where no worker may be, as ISO 3166 " +
		"codes",
	"Placement.FailureDomains": "the number of different failure domains that the workers " +
		"must have",
	"Budget.MaxCost": "the most that the job may cost, in ZEN; it is locked when the job is " +
		"ordered",
	"Budget.MaxPrice": "the highest price in ZEN per PFLOP (10^15 floating-point " +
		"operations) that an offer may ask; default: 1000",
	"Budget.MaxPricePerHour": "the highest price in ZEN per hour that an offer may ask; 0: " +
		"any price",
	"Budget.Deadline": "the time after which the job is stopped; 0: none",
	"Budget.Coin":     "coin in which the workers are paid, by its symbol; empty: ZEN",
	"Budget.OnExceed": "what happens when the budget is spent",
	"Budget.ContributorPart": "the fraction of the model's shares that goes to those whose " +
		"work is verified",
	"Checkpoint.EverySteps": "the number of steps between two checkpoints in the output " +
		"folder",
	"Checkpoint.KeepLast": "the number of latest checkpoints that are kept",
	"Eval.EverySteps":     "the number of steps between two evaluations on the held-out text",
	"Eval.Tasks":          "the measurements that an evaluation makes; default: those of the task",
	"Eval.Prompts":        "texts that the checkpoint continues at every evaluation",
	"Tracking.Tensorboard": "the folder for TensorBoard event files, relative to the " +
		"current folder",
	"Tracking.MLflow":   "an MLflow server that receives the metrics",
	"MLflow.URI":        "the address of the MLflow server",
	"MLflow.Experiment": "the name of the experiment on the MLflow server; default: Default",
	"Spec.Federated":    "how owners train on data that stays with them, of kind: FederatedJob",
	"Federated.Owners":  "the number of owners that may take part",
	"Federated.MinCohort": "the least number of owners whose updates are added, at least 3; an owner sends nothing to " +
		"fewer; default: 3",
	"Federated.Updates": "whether owners hide their updates in sums by masks (masked) or as ciphertexts that are added " +
		"(encrypted), or publish the models that they make, which a committee scores (public); default: masked",
	"Federated.Clip": "the largest Euclidean norm of an update: a longer one is scaled down to it; default: 1",
	"Federated.Method": "whether owners correct their steps by control variates (scaffold: Karimireddy et al. 2020), or " +
		"do not (mean); default: mean",
	"Federated.Weights": "whether each owner counts the same, or in proportion to its examples, which the sum of the " +
		"weights discloses; default: equal",
	"Federated.FullExamples": "the number of examples with which an owner counts fully, of weights: examples",
	"Federated.Sample":       "the fraction of the owners that is asked in a round; default: 1",
	"Federated.Classes":      "the names of all classes, of task: classify; an owner may lack some",
	"Federated.Noise":        "the noise that owners add to their updates, for differential privacy",
	"Federated.ExampleNoise": "the noise that an owner adds to the gradients of its steps, for differential privacy of " +
		"each of its examples",
	"ExampleNoise.Multiplier": "the standard deviation of the noise in the sum of the gradients of a step, relative to " +
		"clip: the larger, the less is disclosed; 0: none",
	"ExampleNoise.Clip": "the largest Euclidean norm of the gradient of an example: a longer one is scaled down to it; " +
		"default: 1",
	"ExampleNoise.MinExamples": "the least number of examples of an owner that takes part, from which epsilon follows",
	"ExampleNoise.Delta": "the probability with which epsilon may not hold, at which the report states it; " +
		"default: 1e-5",
	"Noise.Multiplier": "the standard deviation of the noise of the sum, relative to clip: the larger, the less is " +
		"disclosed; 0: none",
	"Noise.Delta": "the probability with which epsilon may not hold, at which the report states it; " +
		"default: 1e-5",
	"Spec.Experts": "models that are trained apart, each by a job of its own, and read texts together",
	"Spec.Expert": "the name of the expert that this job trains; default: none, and starling train trains a job for " +
		"each",
	"Expert.Name":  "the name of the expert, and of the folder of its run in output.dir",
	"Expert.Prior": "how likely a text is of the domain of the expert, in proportion to the priors of the others",
	"Expert.Set":   "keys of this file, in their sections, that are other for the expert",
	"Output.Dir": "the folder of the run, relative to the current folder and not to the job " +
		"file",
	"Output.Formats": "the formats of the model files",
	"Output.License": "the license of the model for its card, as an SPDX identifier",
	"Output.Push":    "the stores outside of the network that get a copy of the model",
	"Push.To": "the store and the place in it: s3://BUCKET/PREFIX, hf:OWNER/NAME or ipfs; credentials come " +
		"from the environment",
	"Push.Checkpoints": "whether every saved checkpoint is copied, too, as a model of its own",
	"Notify.Webhook":   "the address that receives a POST of a JSON object for each event",
	"Notify.On":        "the events that are reported; default: all",
}
