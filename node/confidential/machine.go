// Package confidential reads the report of a confidential machine from its own interface, and the files of collateral
// that its owner fetched from the maker. It verifies nothing: protocol/attestation does, here and on the chain.
package confidential

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Errors of this package.
var (
	ErrNoMachine  = errors.New("this machine is not a confidential one, or its kernel does not say so")
	ErrCollateral = errors.New("not collateral of a quote")
)

// Interfaces of the kernel. TSM is that of Linux 6.7 and later, for every technology; the others are of earlier ones.
const (
	TSM      = "/sys/kernel/config/tsm/report"
	sevGuest = "/dev/sev-guest"
	tdxGuest = "/dev/tdx_guest"
)

// Machine is the interface of a machine; the zero value is that of this one.
type Machine struct {
	Dir string // in place of TSM
}

// Report asks the machine for a report with 64 bytes of data. It returns the report as the machine gives it, a report
// of SEV-SNP or a quote of TDX.
func (m Machine) Report(data [64]byte) (report []byte, err error) {
	dir := m.Dir
	if dir == "" {
		dir = TSM
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, m.absent(dir)
	}
	entry, err := os.MkdirTemp(dir, "starling-")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoMachine, err)
	}
	defer func() { err = errors.Join(err, os.Remove(entry)) }()
	if err := os.WriteFile(filepath.Join(entry, "inblob"), data[:], 0o600); err != nil {
		return nil, fmt.Errorf("confidential: %w", err)
	}
	report, err = os.ReadFile(filepath.Join(entry, "outblob"))
	if err != nil {
		return nil, fmt.Errorf("confidential: %w", err)
	}
	return report, nil
}

// absent explains that the interface is missing.
func (m Machine) absent(dir string) error {
	for _, old := range []string{sevGuest, tdxGuest} {
		if _, err := os.Stat(old); err == nil {
			return fmt.Errorf("%w: there is %s, and no %s: it needs Linux 6.7 or later with configfs mounted and the module "+
				"tsm loaded", ErrNoMachine, old, dir)
		}
	}
	return fmt.Errorf("%w: there is neither %s nor %s nor %s", ErrNoMachine, dir, sevGuest, tdxGuest)
}
