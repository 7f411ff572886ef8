package torch

import (
	"fmt"

	"github.com/starling-network/starling/node/boxed"
)

// Codes of errors. They are stable: programs may compare them. A child says the ones that begin with EXECUTOR_ here
// without that beginning; what it says is checked against this list.
const (
	codeIsolation = "EXECUTOR_ISOLATION"            // the box cannot be had
	codePython    = "EXECUTOR_NO_PYTHON"            // the owner's Python cannot be run
	codeTorch     = "EXECUTOR_NO_TORCH"             // it cannot import torch
	codeDevice    = "EXECUTOR_DEVICE"               // torch cannot compute there
	codeModule    = "EXECUTOR_MODULE"               // the owner's module is not what it has to be
	codeOperator  = "EXECUTOR_UNSUPPORTED_OPERATOR" // of the job's step
	codeType      = "EXECUTOR_UNSUPPORTED_TYPE"     // of an element in the job's step
	codeStep      = "EXECUTOR_STEP"                 // an exception in a step
	codeMemory    = "EXECUTOR_MEMORY"               // more than the child may have
	codeTimeout   = "EXECUTOR_TIMEOUT"              // no reply in time
	codeDied      = "EXECUTOR_DIED"                 // the child ended
	codeProtocol  = "EXECUTOR_PROTOCOL"             // what it wrote is no reply
)

// fixes say what to do about each.
var fixes = map[string]string{
	codeIsolation: "allow unprivileged user namespaces (sysctl user.max_user_namespaces, " +
		"kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or accept less with " +
		"--executor-isolation reduced",
	codePython: "name a Python with torch: --executor-python /usr/bin/python3",
	codeTorch: "install torch (apt install python3-torch, or pip install torch), or name the Python that has it " +
		"with --executor-python",
	codeDevice:   "use --executor-device cpu, or one that torch has",
	codeModule:   "correct the module that --executor-module names; docs/executor.md says what it has to have",
	codeOperator: "give a module of your own with --executor-module, or train with executor: builtin",
	codeType:     "give a module of your own with --executor-module, or train with executor: builtin",
	codeStep:     "correct the step; without --executor-module the operators of the job run one by one",
	codeMemory:   "allow more with --executor-memory, or train smaller batches",
	codeTimeout:  "allow more with --executor-timeout, or use a faster device",
	codeDied:     "look at what the child printed; the log of the worker has it",
	codeProtocol: "let the step write nothing to the files 3, 4 and 5 that it inherits",
}

// Error is why the executor cannot do what it is asked.
type Error struct {
	Code string
	What string
	Why  string // in the words of the child, if it said something
	Fix  string
}

func wrong(code, what, why string) *Error { return &Error{code, what, why, fixes[code]} }

// Error implements error.
func (e *Error) Error() string {
	if e.Why == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.What)
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.What, e.Why)
}

// Explain returns the parts of the error, for a message to a person or a program.
func (e *Error) Explain() (code, place, what, why, fix string) {
	return e.Code, "", e.What, e.Why, e.Fix
}

// said are the codes that a child may send, with their meaning.
var said = map[string]string{
	codeTorch: "there is no torch", codeDevice: "torch cannot use the device", codeModule: "the module cannot be used",
	codeOperator: "the job's step has an operator that the executor has not",
	codeType:     "the job's step has a type that torch has not",
	codeStep:     "a step failed", codeMemory: "a step takes more memory than the child may have",
	codeProtocol: "the child refused a request",
}

// reported is the error that a child reports.
func reported(code, message string) *Error {
	code = "EXECUTOR_" + code
	what, known := said[code]
	if !known {
		return wrong(codeProtocol, "the child reports an error that there is not", boxed.Clip(message, maxWhy))
	}
	return wrong(code, what, boxed.Clip(message, maxWhy))
}

// maxWhy is how many characters of a child's message are kept.
const maxWhy = 2000
