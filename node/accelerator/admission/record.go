package admission

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/folder"
)

// FileRecord, in the folder of a party, keeps which devices passed the suite.
const FileRecord = "devices.json"

// Record is a device that passed the suite, with all that the outcome follows from.
type Record struct {
	Name     string       `json:"name"`
	Driver   string       `json:"driver"`
	Suite    canon.Digest `json:"suite"`
	Numerics uint32       `json:"numerics"` // the newest version of this build
	Float64  bool         `json:"float64"`  // without it, version 1 was not compared
	Program  canon.Digest `json:"program"`  // SHA-256 of starling-device
	Elements int          `json:"elements"`
	Passed   time.Time    `json:"passed_at"`
}

// records are those of a file, the latest first.
type records struct {
	Devices []Record `json:"devices"`
}

// mostRecords is how many records a file keeps, and mostBytes how many bytes of one are read.
const mostRecords, mostBytes = 16, 64 << 10

// read returns the records of a file: none if it is not there or is not one, since the suite can always run again.
func read(path string) (r records) {
	if path == "" {
		return r
	}
	f, err := os.Open(path)
	if err != nil {
		return r
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, mostBytes)).Decode(&r); err != nil {
		return records{}
	}
	return r
}

// recordOf is the record of a device, but for when it passed.
func recordOf(c device.Capabilities, program canon.Digest) Record {
	return Record{Name: c.Name, Driver: c.Driver, Suite: suite.Digest(Elements), Numerics: kernel.Newest,
		Float64: c.Double, Program: program}
}

// Passed says when a device of this machine passed the suite, by a file of records: false if it would run again.
func Passed(file string, o accelerator.Options, c device.Capabilities) (time.Time, bool) {
	program, err := accelerator.Digest(o)
	if err != nil {
		return time.Time{}, false
	}
	return read(file).of(recordOf(c, program))
}

// of says when a device passed in the same circumstances.
func (r records) of(want Record) (passed time.Time, ok bool) {
	for _, have := range r.Devices {
		passed = have.Passed
		have.Passed, have.Elements = want.Passed, want.Elements
		if have == want {
			return passed, true
		}
	}
	return time.Time{}, false
}

// with returns the records with another, in place of those of the same device.
func (r records) with(x Record) records {
	list := slices.DeleteFunc(slices.Clone(r.Devices), func(have Record) bool { return have.Name == x.Name })
	return records{append([]Record{x}, list[:min(len(list), mostRecords-1)]...)}
}

func (r records) write(path string) error {
	if path == "" {
		return nil
	}
	return folder.WriteJSON(path, r)
}

// Forget removes the records of a device: it has to pass the suite before it is used again.
func Forget(path, name string) error {
	r := read(path)
	r.Devices = slices.DeleteFunc(r.Devices, func(have Record) bool { return have.Name == name })
	return r.write(path)
}
