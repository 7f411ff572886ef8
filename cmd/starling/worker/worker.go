// Package worker is starling worker: commands that start, examine and stop workers and verifiers. The process itself is
// in node/provider.
package worker

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/cmd/starling/attested"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/executor"
	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/cmd/starling/income"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/version"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/network/replica"
	"github.com/starling-network/starling/node/fleet"
	"github.com/starling-network/starling/node/fleet/head"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
)

// Command is starling worker.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("worker", "Work for a network, and be paid for it",
		`Take part in a network with this machine: train units of jobs or do units of others again, and be paid for
what is verified.`,
		upCommand(c), schemaCommand(c), statusCommand(c), tasksCommand(c), logsCommand(c), income.EarningsCommand(c),
		hoursCommand(c),
		explainCommand(c), attested.Submit(c), pauseCommand(c), resumeCommand(c), drainCommand(c), retireCommand(c),
		identityCommand(c), benchCommand(c), income.EstimateCommand(c), replayCommand(c))
}

func upCommand(c *terminal.Console) *cobra.Command {
	return UpOver(c, new(provider.Options))
}

// takingPart is what worker up --help says.
const takingPart = `Join a network as a worker, which trains units, or as a verifier, which re-executes units of
workers. The folder holds the key, which is made when there is none, and the blobs; worker.log there says what
happened. The account needs coins for the stake, which a conviction for wrong work takes half of. A worker without
them joins all the same where the network lets it, and earns its stake: what it is paid becomes the stake, all its
units are audited, and wrong work loses all of it. A verifier, and a worker with --earn-stake=false, says where coins
are to be sent, and waits.

With --pay-to ADDRESS another account is paid, and gets the stake when it is withdrawn, so that the key in the folder
moves no money. Later a change takes as long as a stake takes to leave; the key of the account that is paid changes it
at once (starling account payee).

With --enrol an invitation of starling fleet add makes this a machine of a fleet: its key is made here and signs work
alone, its owner staked for it, is paid, and pays its fees. It needs no coins, and --network is that of the invitation
unless another is given.

With --role worker,verifier one process takes what is ordered: it offers to train and to verify, each at its price, and
has one seat of each at a time, in different runs. While one run waits for others it does the work of the other. A
worker that earns its stake trains only.

A role may add work besides runs. With ",judge" a verifier evaluates the models of contests that the network draws it
for, as starling market arena judge does, with a bond of --judge-bond. With ",host" the model in the folder --host is
hosted at --host-price-in and --host-price-out, as by starling model host. All of it has one memory, --memory. In a
pause a judge makes no report and takes its bond back as soon as it is in no panel, and a host refuses requests. A judge
that is paused until the time for reports is over loses a tenth of its bond. A process that drains closes the host, and
ends when its contests are over. starling worker status shows for how much of its time it computed, by class of work.

With --head, a ticket of starling fleet head, a machine that reaches one host of its local network alone takes part
through that host, which gives it its invitation. Its key is made here and stays here. Other programs of the machine can
use the head through its port of the loopback.

Only outgoing connections to the validator are made; others fetch updates from --listen. Where they cannot dial it,
--behind-nat finds relays among the participants: those that were started with --relay. The first Ctrl-C drains: no
new runs are taken, and the command ends when the present ones are over. The second stops at once; a unit that is not
done then goes to another worker. If no block comes for --drain-timeout meanwhile, the command says what is left to
settle, and ends (UNSETTLED): started again, it settles that.

A worker that has no run lets the registry measure its machine once (--measure), which takes some seconds and gives it
a class; with --tier it says in time that it is there.

A service of the system gives its flags in a file: --config names one (YAML, with apiVersion: starling/v1 and kind:
Worker), in which every flag is a key of its name. Flags on the command line win over it. starling worker schema
prints what it may say; examples/worker.yaml is one.

The blobs keep within --disk: what a run needs stays, and of the rest what was not used for the longest time goes.
Jobs keep within --memory, or three quarters of the memory that is free. A run that may need more of either than there
is left is left at once (STORE_TOO_SMALL, MEMORY_TOO_SMALL), which costs nothing.

The machine stays yours. starling worker pause lets the process set its work aside, and so do conditions:
--pause-busy-cpu 50% while other processes use half of the processors, --pause-on-battery, --pause-hours 08:00-18:00,
--work-hours 22:00-07:00 and --pause-apps blender,steam. No stake is lost by a pause, and a unit that would be late
goes to another worker first.

With --device the units of exact jobs are computed on a GPU that gives the bits of the processor. At the start, and
after a change of the driver or of starling-device, it is compared with the processor; devices.json in the folder
names the devices that passed. One that differs ends the command (DEVICE_INEXACT), and with auto the processor
computes. starling worker status names the device.

With --executor torch the units of jobs that say executor: torch are trained in your own PyTorch, on a CPU or a GPU:
in a child process that has no network and sees none of your files. docs/executor.md says how, and how to write a step
of your own. A unit that it fails at is computed by the built-in engine.`

// UpOver is worker up over options of which the caller may have set some.
func UpOver(c *terminal.Console, o *provider.Options) *cobra.Command {
	var role, config, engine, accelerators string
	var pytorch torch.Options
	var more besides
	var ticket string
	cmd := &cobra.Command{
		Use:   "up --home DIR --network URL [--config FILE]",
		Short: "Take part in a network until Ctrl-C",
		Long:  takingPart,
		Example: `  starling worker up --home net/worker-0 --network http://127.0.0.1:26601
  starling worker up --home net/verifier-0 --network http://127.0.0.1:26601 --role verifier
  starling worker up --home my-worker --network http://127.0.0.1:26601 --role worker,verifier --verify-price 800000000
  starling worker up --home my-worker --network http://127.0.0.1:26601 --role worker,verifier,judge,host \
    --host out/quickstart --host-price-in 0.1 --host-price-out 0.5
  starling worker up --config examples/worker.yaml
  starling worker up --home ~/.starling --enrol machine-1
  starling worker up --home ~/.starling --head machine-1
  starling worker up --home net/worker-0 --network http://127.0.0.1:26601 --work-hours 22:00-07:00 --pause-busy-cpu 50%
  starling worker up --home net/worker-0 --network http://127.0.0.1:26601 --device auto
  starling worker up --home net/worker-0 --network http://127.0.0.1:26601 --executor torch --executor-device cuda
  starling worker up --home ~/.starling --network http://10.0.0.7:26601 --listen /ip4/0.0.0.0/tcp/4001`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			typed := cmd.Flags().Changed(executor.FlagIsolation)
			if config != "" {
				if err := FileForm(cmd).Read(config); err != nil {
					return terminal.WithExit(err, terminal.ExitUsage)
				}
				if err := cmd.ValidateFlagGroups(); err != nil {
					return usage.Error(cmd, err)
				}
			}
			var err error
			if o.Hardware.Model, o.Hardware.Devices, err = demand.ParseAccelerators(accelerators); err != nil {
				return usage.Error(cmd, err)
			}
			if engine == spec.Torch {
				o.Torch = &pytorch
			}
			if o.Class, err = classOf(role, &more, o); err != nil {
				return usage.Error(cmd, err)
			}
			if err := executor.ConfirmReduced(c, o.Torch, typed); err != nil {
				return err
			}
			if err := cmp.Or(behind(cmd, ticket, o), invited(o), checkPause(cmd, o.PauseWhen), checkPayee(o)); err != nil {
				return err
			}
			if o.Keep < 1 {
				return usage.Error(cmd, fmt.Errorf("--keep is at least 1"))
			}
			if o.Replicas < 1 {
				return usage.Error(cmd, fmt.Errorf("--replicas is at least 1"))
			}
			if o.Home == "" || o.RPC == "" {
				return usage.Error(cmd, fmt.Errorf("--home and --network are needed, on the command line or in the "+
					"file of --config"))
			}
			speak(c, o)
			return cause.Worker(provider.Run(cmd.Context(), *o))
		},
	}
	usage.MetricsFlag(cmd, &o.Metrics)
	executor.Flags(cmd, &pytorch)
	f := cmd.Flags()
	pauseFlags(f, &o.PauseWhen)
	f.StringVar(&config, "config", "", "file that gives flags, as starling worker schema describes it")
	f.Var(flagfile.OneOf(&engine, spec.Builtin, spec.Torch), "executor",
		"what takes the steps of jobs with executor: torch: builtin, the engine that every worker has, or torch, your "+
			"PyTorch")
	f.StringVar(&o.Home, "home", "", "folder of the key and the blobs")
	f.StringVar(&o.RPC, "network", "", "HTTP interface of a validator, or of several, separated by commas: the next is "+
		"asked when one is gone")
	f.Var(flagfile.OneOf(&role, roleWords()...), "role",
		"what to do: worker, verifier, both by \""+both+"\", or generator, which draws answers for others to learn from, "+
			"and trains nothing; a verifier may add \","+judges+"\", and each \","+hosts+"\"")
	moneyFlags(f, o)
	more.flags(f)
	wayFlags(cmd, o, &ticket)
	f.Var(&o.Device, "device", "what computes exact units, is measured and is declared: cpu; auto, a GPU that is exact "+
		"if there is one; opencl or opencl:N, the first or the Nth device (docs/devices.md)")
	f.Uint64Var(&o.Hardware.Memory, "memory", 0, "MiB that jobs may use (default: three quarters of the free memory)")
	f.Uint64Var(&o.Hardware.Upload, "upload", 0, "kbit/s promised to peers")
	f.Uint32Var(&o.Hardware.Cores, "cpus", uint32(kernel.Cores), "cores that a job may use")
	f.StringVar(&accelerators, "accelerators", "", "model and number of accelerators, such as h100:8")
	f.StringVar(&o.Hardware.Region, "region", "", "where it is, such as eu-north")
	f.StringVar(&o.Hardware.Jurisdiction, "jurisdiction", "", "ISO 3166 code of the country")
	f.StringVar(&o.Hardware.Domain, "failure-domain", "", "what has this in common fails together")
	f.Var(flagfile.OneOf(&o.Tier, "none", "bronze", "silver", "gold"), "tier",
		"uptime to commit to: none, bronze, silver or gold; below it costs stake")
	f.BoolVar(&o.Measure, "measure", true, "let the registry measure this machine, some seconds long, so that it has a "+
		"class")
	f.StringVar(&o.Pool, "pool", "", "account of a pool that may offer this worker's work with that of others")
	f.IntVar(&o.Threads, "threads", kernel.Cores, "threads of the training")
	o.Disk = member.DefaultDisk
	f.Var(&o.Disk, "disk", "what blobs may take: a size such as 20GiB, or a part of the free disk")
	f.IntVar(&o.Keep, "keep", member.DefaultKeep, "checkpoints of a run that stay: the latest")
	f.IntVar(&o.Replicas, "replicas", replica.Factor,
		"members that keep a blob which is to outlive any of them: data and the latest checkpoints")
	return cmd
}

// speak lets the process tell its owner something, first of a key that others may read and of a disk that is too small.
func speak(c *terminal.Console, o *provider.Options) {
	if path := home.Exposed(o.Home); path != "" {
		c.Say("other users of this machine may read the key: chmod 600 " + path)
	}
	if text := tooLittleRoom(o); text != "" {
		c.Say(text)
	}
	o.Say, o.Version = c.Say, version.Binary()
}

// GiveUpFlag is how long a process that drains waits for a network that is away.
func GiveUpFlag(f *pflag.FlagSet, to *time.Duration) {
	f.DurationVar(to, "drain-timeout", drainTimeout, "while it drains, end when no block has come for so long, and say "+
		"which work is not settled; 0 waits")
}

// drainTimeout is the default of GiveUpFlag.
const drainTimeout = 10 * time.Minute

// wayFlags are the flags about the way to peers.
func wayFlags(cmd *cobra.Command, o *provider.Options, ticket *string) {
	f := cmd.Flags()
	GiveUpFlag(f, &o.GiveUp)
	f.StringSliceVar(&o.Listen, "listen", nil, "multiaddrs to listen on for peers (default: any port of the loopback)")
	f.BoolVar(&o.Hidden, "behind-nat", false, "be reached through relays, because others cannot dial --listen")
	f.BoolVar(&o.Relays, "relay", false, "relay between participants that cannot be dialled; --listen must be reachable")
	f.StringVar(ticket, "head", "", "ticket of starling fleet head, or the file that holds it: the head is the only host "+
		"that this one reaches. In place of --network, and with --behind-nat")
	cmd.MarkFlagsMutuallyExclusive("behind-nat", "relay")
	cmd.MarkFlagsMutuallyExclusive("head", "relay")
}

// moneyFlags are the flags about what is asked, staked and paid.
func moneyFlags(f *pflag.FlagSet, o *provider.Options) {
	f.Uint64Var(&o.Price, "price", market.DefaultPrice, "uzen asked for 10^15 floating-point operations")
	f.Uint64Var(&o.Checks, "verify-price", 0, "uzen asked for 10^15 operations of a verifier, with --role "+both+
		" (default: --price)")
	f.StringArrayVar(&o.Prices.Operations, "price-in", nil, "price in another coin for 10^15 operations, as usdc=0.002 "+
		"(repeatable)")
	f.BoolVar(&o.Prices.Foreign, "no-zen", false, "take orders in the coins of --price-in alone, and none in ZEN")
	f.Uint64Var(&o.Stake, "stake", registry.DefaultStake, "uzen staked at the first start")
	f.BoolVar(&o.Earn, "earn-stake", true, "without the coins of the stake, join without it and earn it; false waits for "+
		"coins")
	f.StringVar(&o.Faucet, "faucet", "", "URL of a faucet of a test network, which is asked for the coins of the stake")
	f.StringVar(&o.Enrol, "enrol", "", "invitation of starling fleet add, or the file that holds it: the machine works "+
		"for the owner's account")
	f.StringVar(&o.PayTo, "pay-to", "", "account that is paid in place of the worker's, such as that of a wallet kept "+
		"elsewhere")
}

// behind makes the head of a local network the way to validators and peers, and asks it for the invitation of the
// machine unless that has one.
func behind(cmd *cobra.Command, ticket string, o *provider.Options) error {
	if ticket == "" {
		return nil
	}
	if o.RPC != "" {
		return usage.Error(cmd, errors.New("--head takes the place of --network"))
	}
	t, err := head.ReadTicket(ticket)
	if err != nil {
		return cause.Head(err)
	}
	link, err := head.Dial(cmd.Context(), t)
	if err != nil {
		return cause.Head(err)
	}
	o.Head, o.RPC, o.Hidden = link, "http://"+link.Address(), true
	if o.Enrol == "" {
		o.Enrol, err = link.Invitation(cmd.Context())
	}
	return cause.Head(err)
}

// invited gives a machine the network of its invitation, unless it has another.
func invited(o *provider.Options) error {
	if o.Enrol == "" || o.RPC != "" {
		return nil
	}
	i, err := fleet.Read(o.Enrol)
	if err != nil {
		return cause.Invitation(err)
	}
	o.RPC = i.Network
	return nil
}

// checkPayee returns an error if another account is to be paid that has no valid address, or if the folder of the key
// is that of a validator.
func checkPayee(o *provider.Options) error {
	if err := notOfValidator(o.Home); err != nil || o.PayTo == "" {
		return err
	}
	return target.WantAddress(o.PayTo)
}

// FileForm is the form of the files of --config.
func FileForm(up *cobra.Command) flagfile.Form {
	return flagfile.Form{Kind: "Worker", Flags: up.LocalFlags(), Except: []string{"config", "help"}}
}

func schemaCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of worker files",
		Long: `Print the JSON Schema (draft 2020-12) of the files of starling worker up --config. An editor that speaks YAML
takes it from a first line "# yaml-language-server: $schema=worker.schema.json".`,
		Example: "  starling worker schema > worker.schema.json",
		Args:    usage.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			text, err := FileForm(upCommand(c)).Schema("Starling worker")
			if err != nil {
				return err
			}
			return c.PrintDocument(text, "urn:starling:worker:v1")
		},
	}
}
