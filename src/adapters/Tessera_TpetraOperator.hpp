// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_TPETRA_OPERATOR_HPP
#define TESSERA_ADAPTERS_TPETRA_OPERATOR_HPP

#include <Teuchos_CommHelpers.hpp>
#include <Tpetra_Operator.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/Tessera_TpetraCompat.hpp"
#include "adapters/Tessera_TpetraHalo.hpp"
#include "adapters/Tessera_TpetraOperands.hpp"
#include "adapters/Tessera_TpetraProduct.hpp"
#include "adapters/Tessera_TpetraSplit.hpp"

namespace Tessera {

/// How the plans of a TpetraOperator are made, and how it applies them.
struct TpetraOptions {
  /// For one column, and for any number where `compute` asks for a narrower type than the matrix has; also says whether
  /// transposes are prepared and numbers can be updated.
  SpmvOptions spmv{};
  /// For several columns; the plan is made at the first apply that has them. num_columns_hint: 0, as here, stands for
  /// the columns of that apply. Whether transposes are prepared and numbers can be updated is said in spmv.
  SpmmOptions spmm = without_hint();
  /// false: wait for the halo before any product, for comparison. Blocking sends (Trilinos 13's default) are kept, too.
  bool overlap = true;
  /// The numbers of x that are sent: as Scalar has them (nullopt), or rounded to FP32 or BF16, of half or a quarter of
  /// the bytes of double. Goes with any spmv.compute, with FP32 in FP16_FP32 as well. Transposed products send sums,
  /// which stay in Scalar.
  std::optional<Precision> halo_precision{};

 private:
  static SpmmOptions without_hint() {
    SpmmOptions options;
    options.num_columns_hint = 0;
    return options;
  }
};

/// What a process has and exchanges.
struct TpetraFacts {
  long long rows = 0;           ///< of A
  long long owned_columns = 0;  ///< whose numbers of x are the process's own
  long long halo_columns = 0;   ///< whose numbers are received
  long long owned_nnz = 0;      ///< entries in own columns
  long long halo_nnz = 0;       ///< entries in the others
  long long boundary_rows = 0;  ///< that have some of these
  long long send_elements = 0;  ///< numbers of x sent for one column; halo_columns are received
  int halo_number_bytes = 0;    ///< of a number as it is sent; transposed products send sizeof(Scalar)
  int neighbours_to = 0;        ///< processes that get some
  int neighbours_from = 0;      ///< processes that send some
};

/// Host seconds of the phases of an apply, with a fence after each; sums over applies.
struct TpetraTimes {
  double begin = 0;     ///< pack, post, send
  double interior = 0;  ///< A_owned x, which the exchange hides behind
  double wait = 0;      ///< what is left of the exchange
  double boundary = 0;  ///< A_halo times what was received, added to boundary rows
  double combine = 0;   ///< Export to another range map, copies
  /// All of them.
  double total() const { return begin + interior + wait + boundary + combine; }
};

/// Y := alpha op(A) X + beta Y for a distributed Tpetra::CrsMatrix, as a Tpetra::Operator: what takes one (Belos,
/// Ifpack2's own users, Thyra) takes this. The products run through Tessera's plans, the exchange is Tpetra's.
///
/// A is split once, A = A_owned + A_halo by columns: those in the domain map's local part, numbered as there, and those
/// that the matrix's Import receives, numbered as they arrive; rows keep their order. An apply posts the exchange,
/// computes A_owned X straight from X while it is under way, waits, and adds A_halo times the received numbers to the
/// boundary rows. Nothing of X is copied but what is sent. Where nothing is received (one process) there is no A_halo,
/// and A_owned is A's own arrays.
///
/// Overlap: receives and sends are nonblocking on a plan of the operator's own (Import::createRemoteOnlyImport; the
/// matrix's plan is not touched). On devices the product runs while the host waits in MPI. On host spaces messages that
/// MPI sends eagerly travel during the product; longer ones move only inside MPI calls, unless MPI progresses by
/// itself. op(A) = A^T overlaps the way back: A_halo^T X is sent first, A_owned^T X computed meanwhile. An Export to a
/// range map that is not the row map, and the Import before a transposed product, do not overlap.
///
/// X and Y: multivectors of any number of columns with constant stride or not; if they share memory X is copied first.
/// beta == 0 overwrites Y, NaN included; alpha == 0 reads neither A nor X. Locally replicated Y is summed up over the
/// processes, as Tpetra does. Precision: that of Scalar, as SpmvPlan and SpmmPlan document it; with
/// SpmvOptions::compute FP32, FP16_FP32 or BF16_FP32 A and X are rounded to that type (X scaled by a power of two per
/// column and process), sums are float, alpha, beta and Y stay in Scalar. The exchange is in Scalar, too, unless
/// halo_precision says otherwise: then received numbers are rounded to nearest, y errs by at most u |alpha| |A_halo||x|
/// more (u = 2^-24 in FP32, 2^-8 in BF16), rows without received columns not at all. Both types reach to 3.4e38, where
/// larger numbers become infinite, and below 1.2e-38 they keep multiples of 2^-149 (BF16: 2^-133) only.
/// Deterministic as the plans are: the same result for the same distribution; another number of processes adds the
/// terms of a row in another order.
///
/// Costs: constructor and update_values are collective, O(local nnz); memory: the plans' formats, and where something
/// is received the matrix once more in CSR. apply is collective over the communicator; a process that throws alone
/// (device errors) leaves the others waiting, everything that is checked is checked on all. apply and the operator's
/// own multivectors are not for two host threads at once. The operator keeps A's arrays: where hosts cannot reach a
/// device's memory Tpetra refuses what reads or writes A on the host as long as the operator lives ("a device view is
/// alive"); there kernels change the numbers.
///
/// @tparam Scalar  double or float.
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
class TpetraOperator : public Tpetra::Operator<Scalar, LocalOrdinal, GlobalOrdinal, Node> {
  static_assert(std::is_same_v<Scalar, double> || std::is_same_v<Scalar, float>,
                "Tessera::TpetraOperator: Scalar must be double or float");

 public:
  /// \name Types of Tpetra, of the local matrix, and of the plans' matrices
  /// \{
  using matrix_type = Tpetra::CrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>;              ///< that is applied
  using multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;       ///< of X and Y
  using map_type = Tpetra::Map<LocalOrdinal, GlobalOrdinal, Node>;                               ///< of A
  using import_type = Tpetra::Import<LocalOrdinal, GlobalOrdinal, Node>;                         ///< of x
  using export_type = Tpetra::Export<LocalOrdinal, GlobalOrdinal, Node>;                         ///< of y
  using local_matrix_type = decltype(Compat::local_matrix(std::declval<const matrix_type&>()));  ///< of Kokkos Kernels
  using csr_type = decltype(csr_view(std::declval<const local_matrix_type&>()));                 ///< of the plans
  using execution_space = typename csr_type::execution_space;                                    ///< where they run
  /// \}

  /// Collective. A is kept; its numbers may change (update_values), its graph may not.
  /// @throw InvalidArgument  A is null or not fill complete; numbers that do not fit SpmvOptions::compute's type;
  ///        halo_precision is neither Scalar's nor FP32 nor BF16
  /// @throw NotCompiled, NotSupported, DeviceError  from the plans
  explicit TpetraOperator(const Teuchos::RCP<const matrix_type>& A, const TpetraOptions& options = {})
      : matrix_(A), options_(options) {
    Impl::require<InvalidArgument>(!A.is_null(), [] { return std::string("TpetraOperator: the matrix is null"); });
    Impl::require<InvalidArgument>(A->isFillComplete(), [] {
      return std::string("TpetraOperator: the matrix is not fill complete; call fillComplete() first");
    });
    check_halo_precision();
    const Compat::ScopedRegion region("Tessera::tpetra setup");
    domain_ = A->getDomainMap();
    range_ = A->getRangeMap();
    row_ = A->getRowMap();
    column_ = A->getColMap();
    exporter_ = A->getGraph()->getExporter();
    replicated_range_ = replicated(*range_);
    replicated_domain_ = replicated(*domain_);
    local_ = Compat::local_matrix(*A);
    check_numbers(csr_view(local_));
    plan_exchange();
    SpmvOptions halo = options.spmv;
    halo.workspace = {};  // one workspace serves one plan
    SpmmOptions spmm = options.spmm;
    if (split_.halo().rows() > 0) spmm.workspace = {};
    owned_ = std::make_unique<Product>(space_, split_.owned(), options.spmv, spmm);
    if (split_.halo().rows() > 0) halo_ = std::make_unique<Product>(space_, split_.halo(), halo, spmm);
  }
  /// With options for single columns only.
  TpetraOperator(const Teuchos::RCP<const matrix_type>& A, const SpmvOptions& spmv)
      : TpetraOperator(A, options_of(spmv)) {}

  /// Of A.
  Teuchos::RCP<const map_type> getDomainMap() const override { return domain_; }
  /// Of A.
  Teuchos::RCP<const map_type> getRangeMap() const override { return range_; }
  /// Whether SpmvOptions::prepare_transpose was set.
  bool hasTransposeApply() const override { return options_.spmv.prepare_transpose; }

  /// Always. With getLocalDiagCopy what preconditioners made for operators ask for; later versions of Tpetra have both
  /// in Tpetra::Operator. Ifpack2 wants a Tpetra::RowMatrix: TpetraRowMatrix.
  bool hasDiagonal() const { return true; }
  /// Of A's present numbers, which are the operator's after update_values().
  /// @param diagonal  on A's row map; 0 where a row has no diagonal entry
  void getLocalDiagCopy(Tpetra::Vector<Scalar, LocalOrdinal, GlobalOrdinal, Node>& diagonal) const {
    matrix_->getLocalDiagCopy(diagonal);
  }
  /// Of A's present numbers. Collective.
  typename matrix_type::mag_type getFrobeniusNorm() const { return matrix_->getFrobeniusNorm(); }
  /// That it was made of.
  const Teuchos::RCP<const matrix_type>& matrix() const noexcept { return matrix_; }

  /// Y := alpha op(A) X + beta Y. Collective. Asynchronous on the Node's default instance where nothing is exchanged.
  /// @throw DimensionMismatch  X or Y not on the maps of op(A), or different numbers of columns
  /// @throw NotSupported  mode is not NO_TRANS and transposes were not prepared; other types than the plans take
  void apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS,
             Scalar alpha = Teuchos::ScalarTraits<Scalar>::one(),
             Scalar beta = Teuchos::ScalarTraits<Scalar>::zero()) const override {
    run(X, Y, mode, alpha, beta, nullptr);
  }
  /// The same with a fence after each phase, whose times are added to `times`: for measurements.
  void apply_timed(TpetraTimes& times, const multivector_type& X, multivector_type& Y,
                   Teuchos::ETransp mode = Teuchos::NO_TRANS, Scalar alpha = Teuchos::ScalarTraits<Scalar>::one(),
                   Scalar beta = Teuchos::ScalarTraits<Scalar>::zero()) const {
    run(X, Y, mode, alpha, beta, &times);
  }

  /// Takes the matrix's present numbers, after resumeFill(), changes of numbers and fillComplete() with the same maps.
  /// Collective: one sum over the processes, and O(local nnz) work without analysis or allocation.
  /// @throw StalePlan  on every process, if the graph, or on any process its local part, is another than before; or if
  ///        SpmvOptions::updatable was false
  /// @throw InvalidArgument  the matrix is not fill complete; numbers that do not fit SpmvOptions::compute's type
  void update_values() {
    Impl::require<StalePlan>(options_.spmv.updatable, [] {
      return std::string("TpetraOperator::update_values: the operator was made with SpmvOptions::updatable = false");
    });
    Impl::require<InvalidArgument>(matrix_->isFillComplete(), [] {
      return std::string("TpetraOperator::update_values: the matrix is not fill complete; call fillComplete() first");
    });
    const local_matrix_type now = Compat::local_matrix(*matrix_);
    const csr_type before = csr_view(pattern_), after = csr_view(now);
    const bool same = same_map(domain_, matrix_->getDomainMap()) && same_map(range_, matrix_->getRangeMap()) &&
                      same_map(row_, matrix_->getRowMap()) && same_map(column_, matrix_->getColMap()) &&
                      Impl::same_pattern(space_, before, after);
    Impl::require<StalePlan>(over_all(same ? 0.0 : 1.0, Teuchos::REDUCE_MAX) == 0.0, [] {
      return std::string(
          "TpetraOperator::update_values: the graph or a map of the matrix has changed; make a new operator");
    });
    check_numbers(after);
    local_ = now;
    // The plans go on with the pattern's first arrays, which `pattern_` keeps.
    const csr_type numbers(before.rows(), before.cols(), before.row_map(), before.entries(), after.values());
    split_.update(space_, numbers);
    owned_->update(space_, split_.owned());
    if (halo_) halo_->update(space_, split_.halo());
  }

  /// Those it was made with.
  const TpetraOptions& options() const noexcept { return options_; }
  /// The plan of A_owned's single columns: what was chosen and why.
  const SpmvPlan<csr_type>& owned_plan() const { return owned_->spmv(); }
  /// Null where nothing is received.
  const SpmvPlan<csr_type>* halo_plan() const { return halo_ ? &halo_->spmv() : nullptr; }

  /// Of this process.
  TpetraFacts facts() const {
    TpetraFacts f;
    f.rows = static_cast<long long>(split_.owned().rows());
    f.owned_columns = static_cast<long long>(split_.owned().cols());
    f.halo_columns = static_cast<long long>(split_.halo().cols());
    f.owned_nnz = static_cast<long long>(split_.owned().nnz());
    f.halo_nnz = static_cast<long long>(split_.halo().nnz());
    f.boundary_rows = static_cast<long long>(split_.halo().rows());
    if (!remote_.is_null()) {
      f.send_elements = static_cast<long long>(remote_->getNumExportIDs());
      f.halo_number_bytes = narrow_ ? narrow_->bytes_per_number() : static_cast<int>(sizeof(Scalar));
      const auto& distributor = remote_->getDistributor();
      f.neighbours_to = static_cast<int>(distributor.getNumSends());
      f.neighbours_from = static_cast<int>(distributor.getNumReceives());
    }
    return f;
  }

 private:
  using Product = Impl::TpetraProduct<csr_type>;
  using Split = Impl::TpetraSplit<csr_type>;
  using BoundaryRows = Impl::BoundaryRows<csr_type>;
  using Ordinals = typename Split::Ordinals;
  using Block = Kokkos::View<Scalar*, typename csr_type::device_type>;
  using MVPointer = Teuchos::RCP<multivector_type>;
  using NarrowHalo = Impl::NarrowHalo<Scalar, typename csr_type::device_type, import_type>;

  static TpetraOptions options_of(const SpmvOptions& spmv) {
    TpetraOptions options;
    options.spmv = spmv;
    return options;
  }
  static bool replicated(const map_type& map) { return !map.isDistributed() && map.getComm()->getSize() > 1; }
  /// No communication: what differs anywhere is found by who reduces the answer.
  static bool same_map(const Teuchos::RCP<const map_type>& a, const Teuchos::RCP<const map_type>& b) {
    return a.get() == b.get() || (a->getGlobalNumElements() == b->getGlobalNumElements() && a->locallySameAs(*b));
  }
  double over_all(double value, Teuchos::EReductionType reduction) const {
    double result = value;
    Teuchos::reduceAll(*row_->getComm(), reduction, value, Teuchos::outArg(result));
    return result;
  }

  bool narrow_halo() const {
    return options_.halo_precision && *options_.halo_precision != Impl::ScalarTraits<Scalar>::precision;
  }
  /// FP16 would need an exponent that all processes agree upon at every apply.
  void check_halo_precision() const {
    const auto halo = options_.halo_precision;
    Impl::require<InvalidArgument>(!narrow_halo() || halo == Precision::FP32 || halo == Precision::BF16, [&] {
      return std::string("TpetraOperator: halo_precision is ") + to_string(*halo) +
             "; numbers are sent as the vectors have them, or as fp32 or bf16";
    });
  }
  /// What of X is received goes to `halo`.
  void begin_exchange(multivector_type& halo, const multivector_type& X) const {
    if (narrow_) {
      narrow_->begin(space_, Compat::read(X), remote_->getDistributor());
    } else {
      Compat::begin_import(halo, X, *remote_);
    }
  }
  void end_exchange(multivector_type& halo, const multivector_type& X) const {
    if (narrow_) {
      narrow_->end(space_, Compat::overwrite(halo), remote_->getDistributor());
    } else {
      Compat::end_import(halo, X, *remote_);
    }
  }

  /// Columns: owned or received; the plan that brings the received ones.
  void plan_exchange() {
    pattern_ = local_;
    const csr_type A = csr_view(local_);
    const auto columns = Compat::local_size(*column_), owned = Compat::local_size(*domain_);
    const auto importer = matrix_->getGraph()->getImporter();
    Ordinals place("Tessera::tpetra::place", columns);
    const auto host = Kokkos::create_mirror_view(place);
    bool identity = true;
    std::size_t received = 0;
    if (importer.is_null()) {
      for (std::size_t c = 0; c < columns; ++c) host(c) = static_cast<LocalOrdinal>(c);
    } else {
      for (std::size_t c = 0; c < columns; ++c) {
        const auto own = domain_->getLocalElement(column_->getGlobalElement(static_cast<LocalOrdinal>(c)));
        host(c) = own;
        identity = identity && own == static_cast<LocalOrdinal>(c);
      }
      const auto remotes = importer->getRemoteLIDs();
      received = static_cast<std::size_t>(remotes.size());
      std::vector<GlobalOrdinal> names(received);
      for (std::size_t i = 0; i < received; ++i) {
        names[i] = column_->getGlobalElement(remotes[i]);
        host(remotes[i]) = static_cast<LocalOrdinal>(-1 - static_cast<LocalOrdinal>(i));
      }
      const Teuchos::ArrayView<const GlobalOrdinal> view(names.data(), static_cast<Teuchos_Ordinal>(received));
      const auto invalid = Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid();
      halo_map_ = Teuchos::rcp(new map_type(invalid, view, domain_->getIndexBase(), domain_->getComm()));
      if (halo_map_->getGlobalNumElements() > 0) {
        remote_ = importer->createRemoteOnlyImport(halo_map_);
        if (options_.overlap) Compat::send_at_once(remote_->getDistributor());
        if (narrow_halo()) narrow_ = std::make_unique<NarrowHalo>(*remote_, *options_.halo_precision);
      }
    }
    Kokkos::deep_copy(place, host);
    split_ = Split(space_, A, place, identity, static_cast<LocalOrdinal>(owned), static_cast<LocalOrdinal>(received));
  }

  /// Numbers that would become infinite are refused, on every process. One pass and one reduction; nothing in the
  /// matrix's own precision.
  void check_numbers(const csr_type& A) const {
    const Precision own = Impl::ScalarTraits<Scalar>::precision;
    const Precision precision = Impl::precision_of(options_.spmv.compute, own);
    if (precision == own || (own == Precision::FP32 && precision == Precision::BF16)) return;
    const double limit =
        precision == Precision::FP16 ? 65504.0 : 3.3895313892515355e38;  // bfloat16's; float's is 0.4 % more
    const auto values = A.values();
    double largest = 0;
    Kokkos::parallel_reduce("Tessera::tpetra[numbers]",
                            Kokkos::RangePolicy<execution_space, Kokkos::IndexType<std::int64_t>>(
                                space_, 0, static_cast<std::int64_t>(values.extent(0))),
                            Impl::LargestNumber<csr_type>{values}, Kokkos::Max<double>(largest));
    largest = over_all(largest, Teuchos::REDUCE_MAX);
    Impl::require<InvalidArgument>(!(largest > limit), [&] {
      return "TpetraOperator: the matrix has numbers up to " + std::to_string(largest) + ", " +
             std::string(to_string(precision)) + " holds up to " + std::to_string(limit) +
             "; scale rows and columns first (leftScale, rightScale), or take another ComputeType";
    });
  }

  const multivector_type& copy_of(const multivector_type& X) const {
    multivector_type& copy = cached(copy_, X.getMap(), X.getNumVectors());
    Tpetra::deep_copy(copy, X);
    return copy;
  }
  multivector_type& cached(MVPointer& kept, const Teuchos::RCP<const map_type>& map, std::size_t columns) const {
    if (kept.is_null() || kept->getNumVectors() != columns || kept->getMap().get() != map.get()) {
      kept = Teuchos::rcp(new multivector_type(map, columns, false));
    }
    return *kept;
  }

  /// Phases of an apply, and their times where these are asked for.
  class Clock {
   public:
    Clock(const execution_space& space, TpetraTimes* times) : space_(space), times_(times) {
      if (times_ != nullptr) Compat::fence(space_, "Tessera::tpetra times"), last_ = std::chrono::steady_clock::now();
    }
    void end(double TpetraTimes::*phase) {
      if (times_ == nullptr) return;
      Compat::fence(space_, "Tessera::tpetra times");
      const auto now = std::chrono::steady_clock::now();
      times_->*phase += std::chrono::duration<double>(now - last_).count();
      last_ = now;
    }

   private:
    const execution_space& space_;
    TpetraTimes* times_;
    std::chrono::steady_clock::time_point last_;
  };

  /// A block of boundary rows.
  typename BoundaryRows::Block boundary_block(std::size_t columns) const {
    const auto rows = static_cast<std::size_t>(split_.halo().rows());
    if (block_.extent(0) < rows * columns) {
      block_ = Compat::allocate<Block>(space_, "Tessera::tpetra::boundary", rows * columns);
    }
    return typename BoundaryRows::Block(block_.data(), rows, columns);
  }
  template <class V>
  static std::int64_t column_stride(const V& v) {
    return v.extent(1) > 1 ? static_cast<std::int64_t>(v.stride(1)) : 0;
  }

  void run(const multivector_type& X_in, multivector_type& Y_in, Teuchos::ETransp mode, Scalar alpha, Scalar beta,
           TpetraTimes* times) const {
    const bool transposed = mode != Teuchos::NO_TRANS;
    Impl::require<NotSupported>(!transposed || hasTransposeApply(), [] {
      return std::string("TpetraOperator: op(A) = A^T needs SpmvOptions::prepare_transpose = true");
    });
    constexpr auto who = "TpetraOperator";
    Impl::check_map(who, "X", X_in, transposed ? range_ : domain_, transposed ? known_range_ : known_domain_);
    Impl::check_map(who, "Y", Y_in, transposed ? domain_ : range_, transposed ? known_domain_ : known_range_);
    Impl::check_columns(who, X_in, Y_in);
    if (Y_in.getNumVectors() == 0) return;
    const Compat::ScopedRegion region("Tessera::tpetra apply");
    if (alpha == Scalar(0)) {
      if (beta == Scalar(0)) {
        Y_in.putScalar(Scalar(0));
      } else if (beta != Scalar(1)) {
        Y_in.scale(beta);
      }
      return;
    }
    // Replicated results are summed up over the processes: the old ones count once.
    const bool reduce = transposed ? replicated_domain_ : replicated_range_;
    if (reduce && !Y_in.isConstantStride()) {
      // Tpetra 13.2 sums up what lies between the columns as well.
      multivector_type& Y = cached(sums_, Y_in.getMap(), Y_in.getNumVectors());
      if (beta != Scalar(0)) Tpetra::deep_copy(Y, Y_in);
      run(X_in, Y, mode, alpha, beta, times);
      Tpetra::deep_copy(Y_in, Y);
      return;
    }
    if (reduce && row_->getComm()->getRank() > 0) beta = Scalar(0);
    Clock clock(space_, times);
    const multivector_type& X = !X_in.isConstantStride() || Impl::share_memory(X_in, Y_in) ? copy_of(X_in) : X_in;
    if (transposed) {
      run_transposed(X, Y_in, alpha, beta, clock);
    } else {
      run_plain(X, Y_in, alpha, beta, clock);
    }
    if (reduce) Y_in.reduce();
    clock.end(&TpetraTimes::combine);
  }

  void run_plain(const multivector_type& X, multivector_type& Y_in, Scalar alpha, Scalar beta, Clock& clock) const {
    const std::size_t columns = X.getNumVectors();
    const bool exports = !exporter_.is_null(), staged = exports || !Y_in.isConstantStride();
    multivector_type& Y = exports ? cached(rows_, row_, columns) : staged ? cached(rows_, range_, columns) : Y_in;
    if (staged && !exports && beta != Scalar(0)) Tpetra::deep_copy(Y, Y_in);
    const Scalar inner = exports ? Scalar(0) : beta;

    multivector_type* const halo = remote_.is_null() ? nullptr : &cached(received_, halo_map_, columns);
    if (halo != nullptr) begin_exchange(*halo, X);
    if (halo != nullptr && !options_.overlap) end_exchange(*halo, X);
    clock.end(&TpetraTimes::begin);
    multiply(*owned_, Op::NoTrans, alpha, X, inner, Y);
    clock.end(&TpetraTimes::interior);
    if (halo != nullptr && options_.overlap) end_exchange(*halo, X);
    clock.end(&TpetraTimes::wait);
    if (halo_) {
      const auto block = boundary_block(columns);
      {
        const auto received = Compat::read(*halo);
        halo_->apply(space_, Op::NoTrans, static_cast<double>(alpha), received, 0.0, block);
      }
      const auto y = Compat::read_write(Y);
      const auto count = static_cast<std::int64_t>(block.extent(0));
      Kokkos::parallel_for("Tessera::tpetra[boundary]",
                           Kokkos::RangePolicy<execution_space, Kokkos::IndexType<std::int64_t>>(
                               space_, 0, count * static_cast<std::int64_t>(columns)),
                           typename BoundaryRows::Add{split_.boundary(), block, y.data(), column_stride(y), count});
    }
    clock.end(&TpetraTimes::boundary);
    if (exports) {
      scale(Y_in, beta);
      Y_in.doExport(Y, *exporter_, Tpetra::ADD_ASSIGN);
    } else if (staged) {
      Tpetra::deep_copy(Y_in, Y);
    }
  }

  void run_transposed(const multivector_type& X_in, multivector_type& Y_in, Scalar alpha, Scalar beta,
                      Clock& clock) const {
    const std::size_t columns = X_in.getNumVectors();
    const multivector_type* X = &X_in;
    if (!exporter_.is_null()) {
      multivector_type& rows = cached(rows_, row_, columns);
      rows.doImport(X_in, *exporter_, Tpetra::INSERT);
      X = &rows;
    }
    clock.end(&TpetraTimes::combine);
    multivector_type* const halo = remote_.is_null() ? nullptr : &cached(received_, halo_map_, columns);
    if (halo_) {
      const auto block = boundary_block(columns);
      const auto count = static_cast<std::int64_t>(block.extent(0));
      {
        const auto x = Compat::read(*X);
        Kokkos::parallel_for("Tessera::tpetra[boundary]",
                             Kokkos::RangePolicy<execution_space, Kokkos::IndexType<std::int64_t>>(
                                 space_, 0, count * static_cast<std::int64_t>(columns)),
                             typename BoundaryRows::Take{split_.boundary(), x.data(), column_stride(x), block, count});
      }
      const auto sent = Compat::overwrite(*halo);
      halo_->apply(space_, Op::Trans, static_cast<double>(alpha), typename BoundaryRows::ConstBlock(block), 0.0, sent);
    } else if (halo != nullptr) {
      halo->putScalar(Scalar(0));  // received columns without entries
    }
    clock.end(&TpetraTimes::boundary);
    if (halo != nullptr) Compat::begin_export_add(Y_in, *halo, *remote_);
    clock.end(&TpetraTimes::begin);
    if (Y_in.isConstantStride()) {
      multiply(*owned_, Op::Trans, alpha, *X, beta, Y_in);
    } else {
      multivector_type& Y = cached(columns_, domain_, columns);
      if (beta != Scalar(0)) Tpetra::deep_copy(Y, Y_in);
      multiply(*owned_, Op::Trans, alpha, *X, beta, Y);
      Tpetra::deep_copy(Y_in, Y);
    }
    clock.end(&TpetraTimes::interior);
    if (halo != nullptr) Compat::end_export_add(Y_in, *halo, *remote_);
    clock.end(&TpetraTimes::wait);
  }

  void multiply(const Product& product, Op op, Scalar alpha, const multivector_type& X, Scalar beta,
                multivector_type& Y) const {
    const auto x = Compat::read(X);
    if (beta == Scalar(0)) {
      product.apply(space_, op, static_cast<double>(alpha), x, 0.0, Compat::overwrite(Y));
    } else {
      product.apply(space_, op, static_cast<double>(alpha), x, static_cast<double>(beta), Compat::read_write(Y));
    }
  }
  static void scale(multivector_type& Y, Scalar beta) {
    if (beta == Scalar(0)) {
      Y.putScalar(Scalar(0));
    } else if (beta != Scalar(1)) {
      Y.scale(beta);
    }
  }

  Teuchos::RCP<const matrix_type> matrix_;
  TpetraOptions options_;
  execution_space space_;
  Teuchos::RCP<const map_type> domain_, range_, row_, column_, halo_map_;
  Teuchos::RCP<const export_type> exporter_;
  Teuchos::RCP<const import_type> remote_;  ///< domain map to halo_map_; null if no process receives anything
  local_matrix_type local_, pattern_;  ///< as of the last update, and as of the constructor: the plans point into both
  bool replicated_range_ = false, replicated_domain_ = false;
  Split split_;
  std::unique_ptr<Product> owned_, halo_;
  std::unique_ptr<NarrowHalo> narrow_;  ///< null where numbers are sent as they are
  mutable Teuchos::RCP<const map_type> known_domain_, known_range_;
  mutable MVPointer received_, rows_, columns_, copy_, sums_;
  mutable Block block_;
};

/// The operator of a matrix, types deduced: `auto A = Tessera::tpetra_operator(matrix, options);`
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
Teuchos::RCP<TpetraOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>> tpetra_operator(
    const Teuchos::RCP<Tpetra::CrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>>& A,
    const TpetraOptions& options = {}) {
  return Teuchos::rcp(new TpetraOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>(A, options));
}
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
Teuchos::RCP<TpetraOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>> tpetra_operator(
    const Teuchos::RCP<const Tpetra::CrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>>& A,
    const TpetraOptions& options = {}) {
  return Teuchos::rcp(new TpetraOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>(A, options));
}

}  // namespace Tessera

#endif
