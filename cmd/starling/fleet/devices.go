package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/accelerator/admission"
	"github.com/starling-network/starling/node/fleet"
)

const (
	keyDevice = "device"
	keyEnrol  = "enrol"
	allOf     = "all" // devices: every GPU that has what exact results need, and the processor
	processor = "cpu"
)

// list returns the devices of this machine.
type list func(ctx context.Context) ([]string, error)

// everyDevice are the devices that "all" stands for.
func everyDevice(ctx context.Context) (all []string, err error) {
	found, err := accelerator.List(ctx, accelerator.Options{})
	if failed, ok := errors.AsType[*accelerator.Error](err); ok && failed.Code == accelerator.CodeNone {
		err = nil // no driver: the processor is all there is
	}
	if err != nil {
		return nil, err
	}
	for i, d := range found {
		if !d.Processor && d.Missing() == "" {
			all = append(all, fmt.Sprintf("opencl:%d", i))
		}
	}
	return append(all, processor), nil
}

// addDevices adds a worker for each device that the file names, under the name of the device.
func (f *hostFile) addDevices(ctx context.Context, every list) (err error) {
	devices := f.Devices
	if len(devices) == 0 {
		return nil
	}
	if f.Invitations == "" && f.All[keyEnrol].Value == "" {
		return errors.New("devices needs invitations, a folder of those of starling fleet add: the workers of a machine " +
			"belong to one owner")
	}
	if slices.Equal(devices, []string{allOf}) {
		if devices, err = every(ctx); err != nil {
			return err
		}
	}
	for i, d := range devices {
		var choice admission.Choice
		switch err := choice.Set(d); {
		case err != nil:
			return fmt.Errorf("devices: %q: %w, or all alone", d, err)
		case slices.Contains(devices[:i], d):
			return fmt.Errorf("devices: %s is there twice", d)
		case len(devices) > 1 && !choice.Processor() && !strings.Contains(d, ":"):
			return fmt.Errorf("devices: %s may be any of several: name each, such as opencl:0", d)
		}
		f.Workers = append(f.Workers, map[string]yaml.Node{keyName: scalar(strings.ReplaceAll(d, ":", "-")),
			keyDevice: scalar(d)})
	}
	return nil
}

func scalar(text string) yaml.Node {
	return yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// invite gives each worker without an invitation one of a folder: that which it was given before, or else the next
// that no worker of the host was ever given. An invitation admits one machine: that of a worker that the file names no
// longer is used, too. A worker that has its key no longer reads it.
func (f *hostFile) invite() error {
	if f.Invitations == "" {
		return nil
	}
	folder, err := filepath.Abs(f.Invitations)
	if err != nil {
		return err
	}
	files, err := fleet.Invitations(folder)
	if err != nil {
		return err
	}
	given, err := enrolments(f.Home)
	if err != nil {
		return err
	}
	for _, own := range f.Workers {
		if e := own[keyEnrol].Value; e != "" {
			given[own[keyName].Value] = e
		}
	}
	for _, own := range f.Workers {
		name := own[keyName].Value
		if own[keyEnrol].Value != "" { // which may be the text of one
			continue
		}
		if given[name] == "" {
			next := slices.IndexFunc(files, func(file string) bool { return !taken(file, given) })
			if next < 0 {
				return fmt.Errorf("worker %s: %s has %d invitations, and other workers of this host were given them: starling "+
					"fleet add --out %s makes more", name, f.Invitations, len(files), f.Invitations)
			}
			given[name] = files[next]
		}
		own[keyEnrol] = scalar(given[name])
	}
	return nil
}

// taken reports whether a worker was given the invitation in a file, as that file or as its text.
func taken(file string, given map[string]string) bool {
	text, _ := os.ReadFile(file) // the worker that gets it says what is wrong with it
	for _, e := range given {
		if path, err := filepath.Abs(e); err == nil && path == file || e == strings.TrimSpace(string(text)) {
			return true
		}
	}
	return false
}

// enrolments are the invitations in the files of workers that earlier starts wrote, by worker.
func enrolments(home string) (map[string]string, error) {
	configs, err := filepath.Glob(filepath.Join(home, "*.yaml"))
	given := map[string]string{}
	for _, path := range configs {
		e, failed := enrolled(path)
		if err = errors.Join(err, failed); e != "" {
			given[strings.TrimSuffix(filepath.Base(path), ".yaml")] = e
		}
	}
	return given, err
}

// enrolled is the invitation in the file of a worker that an earlier start wrote; "": it has none.
func enrolled(config string) (string, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return "", err
	}
	var keys struct {
		Enrol string `yaml:"enrol"`
	}
	err = yaml.Unmarshal(text, &keys)
	return keys.Enrol, err
}
