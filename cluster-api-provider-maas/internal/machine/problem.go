// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/support/maas"
)

// Reasons of conditions while no machine can be allocated or MAAS cannot be reached.
const (
	ReasonWaitingForInfrastructure = infrav1.WaitingForClusterInfrastructureReason
	ReasonWaitingForBootstrapData  = infrav1.WaitingForBootstrapDataReason
	ReasonCredentialsMissing       = infrav1.MAASCredentialsMissingReason
	ReasonUnauthorized             = infrav1.MAASUnauthorizedReason
	ReasonAnotherUser              = infrav1.CredentialsOfAnotherUserReason
	ReasonForbidden                = infrav1.MAASForbiddenReason
	ReasonUnreachable              = infrav1.MAASUnreachableReason
	ReasonUnavailable              = infrav1.MAASUnavailableReason
	ReasonInvalid                  = infrav1.MAASInvalidParameterReason
	ReasonError                    = infrav1.MAASErrorReason
	ReasonNoCapacity               = infrav1.NoCapacityReason
	ReasonAllocationTimedOut       = infrav1.AllocationTimedOutReason
	ReasonAllocating               = infrav1.AllocatingReason
	ReasonAllocationUncertain      = infrav1.AllocationUncertainReason
	ReasonAllocated                = infrav1.MachineAllocatedReason
	ReasonImageNotFound            = infrav1.ImageNotFoundReason
	ReasonFormatNotSupported       = infrav1.BootstrapFormatNotSupportedReason
	ReasonLocked                   = infrav1.MachineLockedReason
	ReasonNotDeployable            = infrav1.MachineNotDeployableReason
	ReasonAttemptsExhausted        = infrav1.DeployAttemptsExhaustedReason
	ReasonVMCommissioning          = infrav1.VMCommissioningReason
	ReasonVMCreationFailed         = infrav1.VMCreationFailedReason
	ReasonVMDeploymentFailed       = infrav1.VMDeploymentFailedReason
	ReasonInterfaceNotFound        = infrav1.InterfaceNotFoundReason
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
