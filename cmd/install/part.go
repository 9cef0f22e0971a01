// SPDX-License-Identifier: Apache-2.0

package install

import (
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Part is what one platform adds to install.
type Part interface {
	// AddFlags adds the platform's flags.
	AddFlags(flags *pflag.FlagSet)
	// Complete checks the flags, reads the files that they name, and returns what the operator gets in its namespace. Its
	// errors name the flag.
	Complete(namespace string) (Addition, error)
}

// Addition is what a platform's flags add to the operator. The zero value adds nothing.
type Addition struct {
	// Args are arguments of the operator's command `run`.
	Args []string
	// Secrets are Secrets of the operator's namespace that it reads as files.
	Secrets []SecretFiles
	// Objects are applied before the operator.
	Objects []client.Object
}

// SecretFiles is a Secret that is mounted into the operator.
type SecretFiles struct{ Name, Dir string }

// completeParts collects what each platform adds to the installation.
func (o *Options) completeParts() error {
	o.addition = Addition{}
	for _, part := range o.parts {
		added, err := part.Complete(o.namespace)
		if err != nil {
			return err
		}
		o.addition.Args = append(o.addition.Args, added.Args...)
		o.addition.Secrets = append(o.addition.Secrets, added.Secrets...)
		o.addition.Objects = append(o.addition.Objects, added.Objects...)
	}
	return nil
}
