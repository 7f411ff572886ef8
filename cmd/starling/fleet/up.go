package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/worker"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/fleet"
	"github.com/starling-network/starling/node/memory"
)

// hostFile is the file of fleet up.
type hostFile struct {
	Version string                 `yaml:"apiVersion"`
	Kind    string                 `yaml:"kind"`
	Home    string                 `yaml:"home"`
	All     map[string]yaml.Node   `yaml:"all"`
	Workers []map[string]yaml.Node `yaml:"workers"`

	Devices     []string `yaml:"devices"`     // a worker for each, in addition
	Invitations string   `yaml:"invitations"` // folder of those for workers that have none

	Releases struct { // each worker is supervised; without a URL, none is
		URL  string `yaml:"url"`
		Root string `yaml:"root"`
	} `yaml:"releases"`
}

const (
	keyName    = "name"
	maxWorkers = 64
)

// named are the names of workers, which are names of folders as well.
var named = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

func upCommand(c *terminal.Console) *cobra.Command {
	var given hostFile
	var network string
	cmd := &cobra.Command{
		Use:   "up [FILE] [--home DIR --devices all --invitations DIR]",
		Short: "Run the workers of this host until Ctrl-C",
		Long: `Run several workers of one host, such as one for each device, each in a process and with a key of its own. The
file names them, with flags of starling worker up as keys: under "all" for every worker, under "workers" for one.
home is a folder with one folder for each worker. Unless the file gives them, the workers share the cores, three
quarters of the free memory and half of the free disk in equal parts, and the name of the host is their failure domain.

--devices, or devices in the file, adds a worker for each device: a list such as opencl:0,opencl:1,cpu, or all, which
are all GPUs that have what exact results need, and the processor. Each is named after its device. --invitations names
a folder with the invitations of starling fleet add --out. Each new worker gets the first that no worker of this host
was given, and keeps it. The owner who made the invitations owns all workers of the machine and is paid for them, and
none of them audits another. With --home no file is needed.

A worker that fails is started again, after 5 seconds and then later each time. One that ended because it was drained
or revoked stays down, and the command ends with the last of them; so does one that drained and ended because the
network was away for its drain-timeout (UNSETTLED). The first Ctrl-C drains all, the second ends them.
With releases: {url: URL, root: FILE} in the file each worker runs under starling supervise.

starling fleet status, drain --host and upgrade take the folder of the host; starling worker status, pause and logs
that of each worker.`,
		Example: `  starling fleet up examples/fleet.yaml
  starling fleet up --home fleet --devices all --invitations invitations
  starling fleet up --home fleet --devices opencl:0,opencl:1 --invitations invitations
  starling fleet status fleet`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, read := "--home "+given.Home, given.workers
			switch {
			case len(args) == 1 && flagsGiven(cmd):
				return usage.Error(cmd, errors.New("the file says home, devices, invitations and network: give it or flags"))
			case len(args) == 1:
				source = args[0]
				read = func(ctx context.Context, every list) ([]fleet.Worker, error) { return readHost(ctx, args[0], every) }
			case given.Home == "" || len(given.Devices) == 0:
				return usage.Error(cmd, errors.New("FILE is needed, or --home and --devices"))
			case network != "":
				given.All = map[string]yaml.Node{"network": scalar(network)}
			}
			given.Version, given.Kind = fileVersion, fileKind
			workers, err := read(cmd.Context(), everyDevice)
			if err != nil {
				return terminal.WithExit(&terminal.Problem{Code: "CONFIG_FLEET", What: "cannot run the workers of " + source,
					Why: err.Error(), Fix: "examples/fleet.yaml is a file to start from"}, terminal.ExitUsage)
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			h := fleet.Host{Program: self, Say: c.Say, Final: func(code int) bool {
				return code == terminal.ExitUsage || code == terminal.ExitUnsettled
			}}
			return unsettled(h.Run(cmd.Context(), workers, terminal.Interrupts(cmd.Context())))
		},
	}
	f := cmd.Flags()
	f.StringVar(&given.Home, "home", "", "folder with one folder for each worker")
	f.StringSliceVar(&given.Devices, "devices", nil, "devices, each of which gets a worker; all: every GPU, and the "+
		"processor")
	f.StringVar(&given.Invitations, "invitations", "", "folder of the invitations of starling fleet add --out")
	f.StringVar(&network, "network", "", "HTTP interface of a validator (default: that of the invitations)")
	return cmd
}

// unsettled explains that workers drained, and ended before their work was settled.
func unsettled(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != terminal.ExitUnsettled {
		return err
	}
	return terminal.WithExit(&terminal.Problem{Code: "UNSETTLED", What: "workers ended before their work was settled",
		Why: err.Error(), Retry: true, Fix: "their messages say what is left: start them again when the network can be " +
			"reached",
	}, terminal.ExitUnsettled)
}

// flagsGiven reports whether a flag of the command itself is set.
func flagsGiven(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"home", "devices", "invitations", "network"}, cmd.Flags().Changed)
}

// readHost reads the file of fleet up, and writes the file of each worker.
func readHost(ctx context.Context, path string, every list) (workers []fleet.Worker, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, flagfile.MaxBytes+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	var file hostFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	if len(text) > flagfile.MaxBytes {
		return nil, fmt.Errorf("it has more than %d bytes", flagfile.MaxBytes)
	}
	return file.workers(ctx, every)
}

// The first keys of a file of fleet up.
const (
	fileVersion = "starling/v1"
	fileKind    = "Fleet"
)

// workers writes the file of each worker, and the names of all.
func (file *hostFile) workers(ctx context.Context, every list) (workers []fleet.Worker, err error) {
	if file.Home != "" {
		if err := file.addDevices(ctx, every); err != nil {
			return nil, err
		}
	}
	switch {
	case file.Version != fileVersion || file.Kind != fileKind:
		return nil, errors.New("wanted apiVersion: starling/v1 and kind: Fleet")
	case (file.Releases.URL == "") != (file.Releases.Root == ""):
		return nil, errors.New("releases needs a url and a root, the file that names the trusted keys")
	case file.Home == "":
		return nil, errors.New("home is missing: a folder with one folder for each worker")
	case len(file.Workers) < 1 || len(file.Workers) > maxWorkers:
		return nil, fmt.Errorf("%d workers, wanted 1 to %d", len(file.Workers), maxWorkers)
	}
	known := map[string]bool{}
	for i, own := range file.Workers {
		name := own[keyName].Value
		if !named.MatchString(name) || known[name] {
			return nil, fmt.Errorf("worker %d: %q is no name of its own, of a-z, 0-9 and dashes", i+1, name)
		}
		known[name] = true
	}
	if err := file.invite(); err != nil {
		return nil, err
	}
	for _, own := range file.Workers {
		name := own[keyName].Value
		config, err := writeWorker(file, name, own)
		if err != nil {
			return nil, fmt.Errorf("worker %s: %w", name, err)
		}
		up := []string{"worker", "up", "--config", config}
		if r := file.Releases; r.URL != "" {
			up = append([]string{"supervise", "--home", filepath.Join(file.Home, name), "--releases", r.URL, "--root", r.Root,
				"--"}, up...)
		}
		workers = append(workers, fleet.Worker{Name: name, Args: up})
	}
	return workers, fleet.KeepNames(file.Home, workers)
}

// writeWorker writes the file of a worker, and reads it as the worker will.
func writeWorker(file *hostFile, name string, own map[string]yaml.Node) (string, error) {
	up, _, err := worker.Command(new(terminal.Console)).Find([]string{"up"})
	if err != nil {
		return "", err
	}
	keys := share(len(file.Workers))
	for _, given := range []map[string]yaml.Node{file.All, own} {
		for key, value := range given {
			if key == "home" || key == "config" {
				return "", fmt.Errorf("%s is set for it: the folder is home/%s", key, name)
			}
			if key != keyName {
				keys[key] = &value
			}
		}
	}
	keys["apiVersion"], keys["kind"], keys["home"] = fileVersion, "Worker", filepath.Join(file.Home, name)
	text, err := yaml.Marshal(keys)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(file.Home, 0o700); err != nil {
		return "", err
	}
	config := filepath.Join(file.Home, name+".yaml")
	if err := os.WriteFile(config, text, 0o600); err != nil { // it may hold an invitation
		return "", err
	}
	return config, worker.FileForm(up).Read(config)
}

// share is the part of a host that each of its workers has.
func share(workers int) map[string]any {
	keys := map[string]any{"threads": max(1, kernel.Cores/workers), "cpus": max(1, kernel.Cores/workers),
		"disk": strconv.Itoa(max(1, 50/workers)) + "%"}
	if free, _, ok := memory.Available(); ok {
		keys["memory"] = max(1, free/4*3/uint64(workers)>>20)
	}
	if host, err := os.Hostname(); err == nil && len(host) <= 64 {
		keys["failure-domain"] = host
	}
	return keys
}
