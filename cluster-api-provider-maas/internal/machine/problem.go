// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/support/maas"
)

// Reasons of conditions while no machine can be allocated or MAAS cannot be reached.
const (
	ReasonWaitingForInfrastructure = "WaitingForClusterInfrastructure"
	ReasonWaitingForBootstrapData  = "WaitingForBootstrapData"
	ReasonCredentialsMissing       = "MAASCredentialsMissing"
	ReasonUnauthorized             = "MAASUnauthorized"
	ReasonAnotherUser              = "CredentialsOfAnotherUser"
	ReasonForbidden                = "MAASForbidden"
	ReasonUnreachable              = "MAASUnreachable"
	ReasonUnavailable              = "MAASUnavailable"
	ReasonInvalid                  = "MAASInvalidParameter"
	ReasonError                    = "MAASError"
	ReasonNoCapacity               = "NoCapacity"
	ReasonAllocationTimedOut       = "AllocationTimedOut"
	ReasonAllocating               = "Allocating"
	ReasonAllocationUncertain      = "AllocationUncertain"
	ReasonAllocated                = "MachineAllocated"
	ReasonImageNotFound            = "ImageNotFound"
	ReasonFormatNotSupported       = "BootstrapFormatNotSupported"
	ReasonLocked                   = "MachineLocked"
	ReasonNotDeployable            = "MachineNotDeployable"
	ReasonAttemptsExhausted        = "DeployAttemptsExhausted"
	ReasonVMCommissioning          = "VMCommissioning"
	ReasonVMCreationFailed         = "VMCreationFailed"
	ReasonVMDeploymentFailed       = "VMDeploymentFailed"
	ReasonInterfaceNotFound        = "InterfaceNotFound"
)

// Problem is the reason and the message of a condition while a step is not possible.
type Problem struct{ Reason, Message string }

// ProblemOf converts an error of MAAS or of its credentials into a reason and an actionable message.
func ProblemOf(err error) Problem {
	switch {
	case identity.IsMissing(err):
		return Problem{ReasonCredentialsMissing, err.Error()}
	case maas.IsUnauthorized(err):
		return Problem{ReasonUnauthorized, fmt.Sprintf("%v; put a valid API key into the Secret with the MAAS credentials", err)}
	case maas.IsForbidden(err):
		return Problem{ReasonForbidden, err.Error()}
	case maas.IsUnreachable(err):
		return Problem{ReasonUnreachable, fmt.Sprintf("%v; check the endpoint in the Secret with the MAAS credentials, and the network", err)}
	case maas.IsUnavailable(err):
		return Problem{ReasonUnavailable, err.Error()}
	case maas.IsInvalid(err):
		return Problem{ReasonInvalid, err.Error()}
	}
	return Problem{ReasonError, err.Error()}
}
