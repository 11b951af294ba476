// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "check.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/OpenMPKinds.h>
#include <clang/Frontend/CompilerInstance.h>
#include <set>
#include <utility>

namespace diomp::pragma {
namespace {

using clang::QualType;
using clang::SourceLocation;
using clang::VarDecl;

class checker : public clang::RecursiveASTVisitor<checker> {
public:
    checker(const unit_state &state, clang::ASTContext &context)
        : state_(state), context_(context) {}

    // Hooks of the visitor, with its names.
    bool shouldVisitTemplateInstantiations() const { return true; }
    bool shouldVisitLambdaBody() const { return true; }
    bool dataTraverseStmtPre(clang::Stmt *statement) {
        target_depth_ += is_target_region(statement) ? 1 : 0;
        return true;
    }
    bool dataTraverseStmtPost(clang::Stmt *statement) {
        target_depth_ -= is_target_region(statement) ? 1 : 0;
        return true;
    }
    bool VisitVarDecl(VarDecl *variable);

private:
    static bool is_target_region(const clang::Stmt *statement) {
        const auto *const openmp = llvm::dyn_cast_or_null<clang::OMPExecutableDirective>(statement);
        return openmp != nullptr &&
               clang::isOpenMPTargetExecutionDirective(openmp->getDirectiveKind());
    }

    template <unsigned N, typename... Arguments>
    void error(SourceLocation where, const char (&text)[N], const Arguments &...arguments);
    void note_instantiation(const VarDecl *variable);

    void check_group(const VarDecl *variable, const directive &of);
    void check_section(const VarDecl *variable, const item &of);
    void check_buffer(const VarDecl *variable, const directive &of, const marked_variable &mark);
    void check_element(const directive &of, const item &buffer, QualType type);
    void check_number(const VarDecl *variable, const marked_variable &mark);
    void check_list(const VarDecl *variable, const marked_variable &mark);

    const unit_state &state_;
    clang::ASTContext &context_;
    const VarDecl *current_ = nullptr;
    int target_depth_ = 0;
    std::set<std::pair<SourceLocation, std::string>> reported_;
    QualType dst_element_; ///< of the directive whose variables are being visited
};

/// Reports an error once per location, although a template may be instantiated many times and
/// OpenMP keeps copies of statements.
template <unsigned N, typename... Arguments>
void checker::error(SourceLocation where, const char (&text)[N], const Arguments &...arguments) {
    if (!reported_.emplace(where, text).second) {
        return;
    }
    auto &diagnostics = context_.getDiagnostics();
    {
        auto report = diagnostics.Report(
            where, diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Error, text));
        (void)(report << ... << arguments);
    }
    note_instantiation(current_);
}

void checker::note_instantiation(const VarDecl *variable) {
    for (const auto *outer = variable->getDeclContext(); outer != nullptr;
         outer = outer->getParent()) {
        const auto *const function = llvm::dyn_cast<clang::FunctionDecl>(outer);
        if (function == nullptr || !function->isTemplateInstantiation()) {
            continue;
        }
        auto &diagnostics = context_.getDiagnostics();
        auto const where = function->getPointOfInstantiation();
        std::string shown;
        llvm::raw_string_ostream stream(shown);
        function->getNameForDiagnostic(stream, context_.getPrintingPolicy(), true);
        diagnostics.Report(
            where.isValid() ? where : function->getLocation(),
            diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Note, "in instantiation of '%0'"))
            << shown;
        return;
    }
}

bool checker::VisitVarDecl(VarDecl *variable) {
    auto const found = state_.variables.find(variable->getIdentifier());
    if (found == state_.variables.end() || variable->isInvalidDecl() ||
        variable->getLocation() != found->second.location) {
        return true;
    }
    const auto &mark = found->second;
    const auto &of = state_.directives[mark.directive];
    current_ = variable;
    if (mark.meaning == role::group) {
        check_group(variable, of);
        return true;
    }
    const auto *const init = variable->getInit();
    if (init == nullptr || init->isTypeDependent() || variable->getType()->isDependentType()) {
        return true;
    }
    if (mark.meaning == role::low || mark.meaning == role::length) {
        check_number(variable, mark);
    } else if (mark.meaning == role::list) {
        check_list(variable, mark);
    } else {
        check_buffer(variable, of, mark);
    }
    return true;
}

void checker::check_group(const VarDecl *variable, const directive &of) {
    if (target_depth_ > 0) {
        error(of.location, "'%0' inside a target region: communication is the host's",
              of.kind->name);
    }
    const auto *const init = variable->getInit();
    if (of.group.empty() || init == nullptr) {
        return;
    }
    // C accepts any pointer with a warning.
    const auto *const cast = llvm::dyn_cast<clang::ImplicitCastExpr>(init->IgnoreParens());
    if (cast != nullptr && cast->getCastKind() == clang::CK_BitCast &&
        !cast->getSubExpr()->getType()->isVoidPointerType()) {
        error(of.group.front().getLocation(), "the group is of type %0, not ompx_group_t",
              cast->getSubExpr()->getType());
    }
}

void checker::check_number(const VarDecl *variable, const marked_variable &mark) {
    bool const is_length = mark.meaning == role::length;
    auto const where =
        (is_length ? mark.of->array_section->length : mark.of->array_section->low).front();
    auto const type = variable->getType();
    if (!type->isIntegralOrUnscopedEnumerationType()) {
        if (!type->isRecordType()) {
            error(where.getLocation(),
                  "a section's %select{start|length}0 must be an integer, and this is of type %1",
                  is_length ? 1 : 0, type);
        }
        return;
    }
    clang::Expr::EvalResult value;
    if (!variable->getInit()->isValueDependent() &&
        variable->getInit()->EvaluateAsInt(value, context_) && value.Val.getInt().isNegative()) {
        // A pointer may have elements before it.
        if (is_length) {
            error(where.getLocation(), "the section's length is negative");
        }
    }
}

/// Checks counts and displacements: a pointer to the first of some integers.
void checker::check_list(const VarDecl *variable, const marked_variable &mark) {
    auto const pointee = variable->getType()->getPointeeType();
    if (!pointee.isNull() && (!pointee->isIntegerType() || pointee->isBooleanType())) {
        error(mark.location, "counts and displacements are integers, and these are of type %0",
              pointee);
    }
}

/// Checks that the base is an array, or a pointer with an explicit length.
void checker::check_section(const VarDecl *variable, const item &of) {
    const auto *const call = llvm::dyn_cast<clang::CallExpr>(variable->getInit()->IgnoreImplicit());
    if (call == nullptr || call->getNumArgs() != 1) {
        return;
    }
    const auto *const argument = call->getArg(0)->IgnoreParenImpCasts();
    QualType base;
    if (const auto *const element = llvm::dyn_cast<clang::ArraySubscriptExpr>(argument)) {
        base = element->getLHS()->IgnoreParenImpCasts()->getType();
    } else if (const auto *const own = llvm::dyn_cast<clang::CXXOperatorCallExpr>(argument)) {
        base = own->getArg(0)->IgnoreParenImpCasts()->getType();
    } else {
        return;
    }
    if (!base->isArrayType() && !base->isPointerType()) {
        error(of.location(), "a section is of an array or a pointer, and this is of type %0", base);
    } else if (!base->isConstantArrayType() && !base->isVariableArrayType() &&
               of.array_section->length.empty()) {
        error(of.array_section->colon, "the section needs a length: %0 does not say how long it is",
              base);
    }
}

void checker::check_buffer(const VarDecl *variable, const directive &of,
                           const marked_variable &mark) {
    const auto &buffer = *mark.of;
    auto const pointee = variable->getType()->getPointeeType();
    if (pointee.isNull()) {
        return;
    }
    if (buffer.array_section) {
        check_section(variable, buffer);
    } else if (pointee->isPointerType()) {
        error(buffer.location(), "'%0' is a pointer: it needs an array section, as in p[0:n]",
              buffer.text);
        return;
    }
    auto const element = context_.getBaseElementType(pointee);
    if (mark.meaning == role::dst && element.isConstQualified()) {
        error(buffer.location(), "'%0' is const, and '%1' writes it", buffer.text, of.kind->name);
    }
    int dimensions = 0;
    for (const auto *array = context_.getAsArrayType(pointee); array != nullptr;
         array = context_.getAsArrayType(array->getElementType())) {
        ++dimensions;
    }
    if ((of.kind->has_operator || of.kind->has_lists()) && dimensions > max_dimensions) {
        error(buffer.location(), "'%0' has %1 dimensions, more than %2", buffer.text, dimensions,
              max_dimensions);
    }
    if (of.kind->has_operator) {
        check_element(of, buffer, element);
    } else if (!element.isTriviallyCopyableType(context_) || element->isFunctionType()) {
        error(buffer.location(), "type %0 cannot be copied byte by byte", element);
    } else if (of.kind->has_lists() && element->isPointerType()) {
        error(buffer.location(), "'%0' holds pointers, which mean nothing at other ranks",
              buffer.text);
    }
    QualType const plain = context_.getCanonicalType(element).getUnqualifiedType();
    if (mark.meaning == role::dst) {
        dst_element_ = plain;
    } else if (of.kind->has_operator && dst_element_ != plain) {
        error(buffer.location(), "the source has elements of type %0, the destination of type %1",
              element, dst_element_);
    }
}

/// Checks that diomp.h has a type number for this type and that the operator supports it.
void checker::check_element(const directive &of, const item &buffer, QualType type) {
    QualType plain = context_.getCanonicalType(type).getUnqualifiedType();
    const auto *const enumeration = plain->getAs<clang::EnumType>();
    if (enumeration != nullptr && !context_.getLangOpts().CPlusPlus) {
        plain = context_.getCanonicalType(enumeration->getDecl()->getIntegerType());
    }
    auto const *const builtin = plain->getAs<clang::BuiltinType>();
    auto const *const complex = plain->getAs<clang::ComplexType>();
    bool allowed = false;
    if (complex != nullptr) {
        auto const component = complex->getElementType().getUnqualifiedType();
        allowed =
            of.op->on_complex && (component == context_.FloatTy || component == context_.DoubleTy);
    } else if (builtin != nullptr) {
        using kind = clang::BuiltinType;
        switch (builtin->getKind()) {
        case kind::Bool:
            allowed = of.op->on_bool;
            break;
        case kind::Half:
        case kind::Float16:
        case kind::BFloat16:
        case kind::Float:
        case kind::Double:
        case kind::LongDouble:
            allowed = of.op->on_floating;
            break;
        case kind::Char_S:
        case kind::Char_U:
        case kind::SChar:
        case kind::UChar:
        case kind::Short:
        case kind::UShort:
        case kind::Int:
        case kind::UInt:
        case kind::Long:
        case kind::ULong:
        case kind::LongLong:
        case kind::ULongLong:
            allowed = true;
            break;
        default:
            break;
        }
    }
    if (!allowed) {
        error(buffer.location(), "operator '%0' does not work on elements of type %1",
              of.op->spelling, type);
    }
}

} // namespace

void check(const unit_state &state, clang::ASTContext &context) {
    checker(state, context).TraverseDecl(context.getTranslationUnitDecl());
}

} // namespace diomp::pragma
